import { type ReactNode, useRef } from "react";
import { ChevronLeft, ChevronRight, SkipForward, ZoomIn, ZoomOut } from "lucide-react";
import { MARKS } from "./chart-plot";
import { toTheSecond } from "../format";
import type { Mark, MarkKind } from "../marks";
import { follow, RANGES, scale, shift, useTimeRange } from "../time-range";
import "./chart.css";

/**
 * The range of time of all charts of the page. Its width on the page does not change. `follows`: the user
 * can choose how far back the charts go; otherwise they show all they have.
 */
export function RangeBar({ follows = true }: { follows?: boolean }) {
  const range = useTimeRange();
  const { minutes, held } = range;
  const bar = useRef<HTMLDivElement>(null);
  const backToNow = () => {
    // the button disappears when it is pressed: the focus goes to the range that is followed now, else to
    // the first button
    const followed = bar.current?.querySelector<HTMLElement>(`[data-minutes="${minutes}"]`);
    (followed ?? bar.current?.querySelector("button"))?.focus();
    follow();
  };
  const text = held ? `Shows ${toTheSecond(held.from)} to ${toTheSecond(held.to)}` : "";
  return (
    <div ref={bar} className="range-bar" role="group" aria-label="Time range">
      {follows && (
        <div className="segmented">
          {RANGES.map(([value, title]) => (
            <button
              key={value}
              type="button"
              data-minutes={value}
              aria-pressed={!held && value === minutes}
              title={`Follow the last ${title}`}
              onClick={() => follow(value)}
            >
              {title}
            </button>
          ))}
        </div>
      )}
      <Tool
        label="Earlier"
        title="Earlier. Drag in a chart to choose a range."
        off={!follows && !held}
        run={() => shift(-1)}
      >
        <ChevronLeft aria-hidden="true" />
      </Tool>
      <Tool
        label="Later"
        title={held ? "Later" : "Later: the newest figures are shown already"}
        off={!held}
        run={() => shift(1)}
      >
        <ChevronRight aria-hidden="true" />
      </Tool>
      <Tool label="Closer" title="Zoom in: half the time" off={!follows && !held} run={() => scale(0.5)}>
        <ZoomIn aria-hidden="true" />
      </Tool>
      <Tool label="Wider" title="Zoom out: twice the time" off={!follows && !held} run={() => scale(2)}>
        <ZoomOut aria-hidden="true" />
      </Tool>
      <button
        type="button"
        className={`button button--small range-bar__now${held ? "" : " range-bar__now--none"}`}
        aria-label="Back to now"
        title={`Back to now. ${text}`}
        onClick={backToNow}
      >
        <SkipForward aria-hidden="true" />
        Now
      </button>
      <span className="visually-hidden" role="status">
        {text}
      </span>
    </div>
  );
}

interface ToolProps {
  label: string;
  title: string;
  /** it stays where the keyboard finds it */
  off: boolean;
  run: () => void;
  children: ReactNode;
}

function Tool({ label, title, off, run, children }: ToolProps) {
  return (
    <button
      type="button"
      className="button button--quiet button--small button--icon"
      aria-label={label}
      title={title}
      aria-disabled={off}
      onClick={() => !off && run()}
    >
      {children}
    </button>
  );
}

/** The meaning of the marks in the charts. It always takes one line, so nothing moves. */
export function MarkLegend({ marks }: { marks: Mark[] }) {
  const shown = new Set(marks.map((mark) => mark.kind));
  const kinds = (Object.keys(MARKS) as MarkKind[]).filter((kind) => shown.has(kind));
  return (
    <p className="mark-legend muted small">
      {kinds.map((kind) => (
        <span key={kind}>
          <span className={`mark mark--${kind}`} aria-hidden="true">
            {MARKS[kind].glyph}
          </span>
          {MARKS[kind].word}
        </span>
      ))}
    </p>
  );
}
