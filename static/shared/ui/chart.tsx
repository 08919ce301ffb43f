import { useEffect, useMemo, useRef, useState, type RefObject } from "react";
import { csvName, csvOf } from "../csv";
import { download } from "../download";
import { toldFlags, type Flags } from "../flags";
import { instant, toTheSecond } from "../format";
import { marksAt } from "../marks";
import { follow, hold, useTimeRange } from "../time-range";
import { flagKey, Legend, lineKey } from "./chart-legend";
import {
  draw,
  HEIGHT,
  loadPlotly,
  spanIn,
  pickedIn,
  type ChartData,
  type Drawn,
  type Line,
  type Plotly,
} from "./chart-plot";
import { drawings } from "./draw-queue";
import "./plotly.css";
import "./chart.css";

export type { ChartData } from "./chart-plot";

interface Props extends ChartData {
  /** what its figures are of, for the name of the file */
  of: string;
  /** what it leaves out, in words */
  note?: string;
  /** what a click on it does: `time` in ms since the epoch, and the curve that was clicked, unless it was a mark */
  onPick?: ((time: number, line: Line | undefined) => void) | undefined;
}

/** Charts beside one another, as the width allows, each on a card. */
export function ChartCards({ charts }: { charts: Props[] }) {
  return (
    <div className="charts">
      {charts.map((chart) => (
        <div key={chart.title} className="card card__body">
          <Chart {...chart} />
        </div>
      ))}
    </div>
  );
}

/** A Plotly line chart that can be dragged to a range of time, with a table and a file of the same figures. */
export function Chart(props: Props) {
  const [table, setTable] = useState(false);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const { title, unit, lines, flags = [], height = HEIGHT } = props;
  const toggle = (key: string) =>
    setHidden(new Set(hidden.has(key) ? [...hidden].filter((each) => each !== key) : [...hidden, key]));
  const name = title || lines.map((line) => line.name).join(", ");
  return (
    <figure className="chart">
      <figcaption className="chart__head">
        {title && <span className="section-title">{title}</span>}
        <span className="muted small">{unit}</span>
        <Legend lines={lines} flags={flags} hidden={hidden} onToggle={toggle} left={!title} />
        <button
          type="button"
          className="button button--quiet button--small"
          aria-label={`Table of ${name}`}
          aria-pressed={table}
          onClick={() => setTable(!table)}
        >
          Table
        </button>
        <button
          type="button"
          className="button button--quiet button--small"
          aria-label={`CSV of ${name}`}
          title="Download the figures that are shown, with the events of that time"
          onClick={() => download(csvName(props.of, name), "text/csv", csvOf(props))}
        >
          CSV
        </button>
      </figcaption>
      {table ? <ChartTable {...props} height={height} /> : <Plot {...props} hidden={hidden} />}
      {props.note && <p className="chart__note muted small">{props.note}</p>}
      {!table && props.times.length === 0 && <p className="chart__none muted small">No figures yet</p>}
    </figure>
  );
}

/** Changes when the colours do. */
function useThemeTurn(): number {
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const changed = () => setTurn((old) => old + 1);
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    window.addEventListener("fogline:theme", changed);
    system.addEventListener("change", changed);
    return () => {
      window.removeEventListener("fogline:theme", changed);
      system.removeEventListener("change", changed);
    };
  }, []);
  return turn;
}

/** How wide it is, px, and whether it is in sight or nearly so. */
function usePlace(place: RefObject<HTMLElement | null>): { width: number; near: boolean } {
  const [width, setWidth] = useState(0);
  const [near, setNear] = useState(false);
  useEffect(() => {
    const target = place.current;
    if (!target) return;
    const size = new ResizeObserver(() => setWidth(Math.round(target.clientWidth)));
    const sight = new IntersectionObserver((seen) => setNear(seen.at(-1)?.isIntersecting ?? true), {
      rootMargin: "200px",
    });
    size.observe(target);
    sight.observe(target);
    return () => {
      size.disconnect();
      sight.disconnect();
    };
  }, [place]);
  return { width, near };
}

/** Whether a mouse, finger or pen is down on the chart: drawing then would end the drag. */
function useDragged() {
  const dragged = useRef(false);
  useEffect(() => {
    const released = () => (dragged.current = false);
    // captured: Plotly stops these on their way
    window.addEventListener("pointerup", released, true);
    window.addEventListener("pointercancel", released, true);
    return () => {
      window.removeEventListener("pointerup", released, true);
      window.removeEventListener("pointercancel", released, true);
    };
  }, []);
  return dragged;
}

/** The chart without what the legend has hidden; each line and mark keeps its colour. */
function withoutHidden(chart: ChartData, hidden: ReadonlySet<string>): Drawn {
  const lines = chart.lines.map((line, index) => ({ ...line, series: line.series ?? index + 1 }));
  const flags = (chart.flags ?? []).map((each, index) => ({ ...each, index }));
  return {
    ...chart,
    lines: lines.filter((line) => !hidden.has(lineKey(line))),
    flags: flags.filter((each) => !hidden.has(flagKey(each))),
  };
}

function Plot({ hidden, ...props }: Props & { hidden: ReadonlySet<string> }) {
  const place = useRef<HTMLDivElement>(null);
  const [plotly, setPlotly] = useState<Plotly | null>(null);
  const { width, near } = usePlace(place);
  const dragged = useDragged();
  const theme = useThemeTurn();
  const held = useTimeRange((state) => state.held);
  const asked = useRef<unknown>(null);
  useEffect(() => void loadPlotly().then((module) => setPlotly(() => module)), []);
  useEffect(() => {
    const target = place.current;
    if (!target || !plotly || !near || width === 0) return;
    const next = async () => {
      if (dragged.current) return; // the next figures draw it, or the new range
      const drawn = withoutHidden(props, hidden);
      const plot = await draw(target, plotly, drawn, held, width);
      plot.removeAllListeners("plotly_relayout");
      plot.removeAllListeners("plotly_doubleclick");
      plot.on("plotly_relayout", (change) => {
        const span = spanIn(change);
        if (span) hold(span);
      });
      plot.on("plotly_doubleclick", () => follow());
      plot.removeAllListeners("plotly_click");
      plot.on("plotly_click", (click) => {
        const picked = pickedIn(click, target.getBoundingClientRect());
        if (picked) props.onPick?.(picked.time, drawn.lines[picked.curve]);
      });
    };
    // new figures can wait; what the user did cannot
    const wish = `${held?.from} ${held?.to} ${props.span_ms} ${theme} ${width} ${[...hidden].join()}`;
    drawings.add(target, next, wish !== asked.current);
    asked.current = wish;
  }, [plotly, props, hidden, held, theme, width, near, dragged]);
  useEffect(() => {
    const target = place.current;
    if (!target || !plotly) return;
    // Plotly draws in steps of its own: it is taken down only when they are over
    return () => drawings.add(target, () => plotly.purge(target));
  }, [plotly]);
  const { title, lines, unit, height = HEIGHT } = props;
  return (
    <div
      ref={place}
      className="chart__plot"
      style={{ height }}
      role="img"
      aria-label={[title || lines.map((line) => line.name).join(", "), unit].filter(Boolean).join(", ")}
      onPointerDownCapture={() => (dragged.current = true)}
    />
  );
}

const NO_FLAGS: Flags[] = [];
const ROWS_MAX = 200;

function ChartTable({ times, lines, marks, flags = NO_FLAGS, height }: Props) {
  const happened = useMemo(
    () =>
      marksAt(
        times.map((time) => instant(time) ?? 0),
        [...(marks ?? []), ...toldFlags(flags)],
      ),
    [times, marks, flags],
  );
  const events = marks !== undefined || flags.length > 0;
  const rows = times
    .map((time, index) => ({ time: instant(time) ?? 0, index }))
    .reverse()
    .slice(0, ROWS_MAX);
  return (
    <div
      className="table-wrap"
      style={{ maxHeight: height, overflowY: "auto" }}
      tabIndex={0}
      role="region"
      aria-label="Figures"
    >
      <table className="table table--figures">
        <thead>
          <tr>
            <th>Time</th>
            {lines.map((line) => (
              <th key={line.name} className="num">
                {line.name}
                {line.unit && ` (${line.unit})`}
              </th>
            ))}
            {events && <th>Events</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ time, index }) => (
            <tr key={index}>
              <td className="num">{toTheSecond(time)}</td>
              {lines.map((line) => (
                <td key={line.name} className="num">
                  {line.texts?.[index] ?? line.values[index] ?? "–"}
                </td>
              ))}
              {events && <td className="muted">{happened[index]}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
