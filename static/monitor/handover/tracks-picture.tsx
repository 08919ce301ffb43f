/** Both nodes of a handover as tracks on one time axis, with the table of its moments beside them. */
import { useId, useMemo, useRef, useState, type PointerEvent } from "react";
import { ChevronLeft, ChevronRight, Minus, Plus } from "lucide-react";
import { useNow } from "../../shared/clock";
import { millis, plural, timeOfDay } from "../../shared/format";
import { phaseTitle } from "../../shared/handovers";
import { pauseTold } from "../../shared/pause";
import type { Handover, HandoverDetails } from "../../shared/types";
import { Tip } from "../../shared/ui/parts";
import {
  relative,
  shifted,
  ticksOf,
  tracksOf,
  zoomed,
  type Drawn,
  type Moment,
  type Span,
  type Stretch,
  type Track,
  type Tracks,
} from "./tracks";

/** Where the rows of the picture lie, in pixels. */
const PHASES = { y: 20, height: 22 };
const ORIGIN = { y: 82, height: 58 };
const WAIT = { y: 148, height: 30 };
const TARGET = { y: 218, height: 58 };
const AXIS = 288;
const HEIGHT = 312;
const LANES = 3;

const ROLES: Record<Stretch["role"], string> = {
  owns: "owns",
  fetches: "fetches the checkpoint",
  follows: "follows",
  claims: "takes over",
  stopped: "stopped",
};

export function TracksPicture({
  handover,
  written,
}: {
  handover: Handover;
  written: HandoverDetails["written"];
}) {
  const clock = useNow();
  const now = handover.outcome === null ? clock : 0;
  const tracks = useMemo(() => tracksOf(handover, written, now), [handover, written, now]);
  const [chosen, setChosen] = useState<Span | "whole" | "cut" | null>(null);
  const span = spanOf(tracks, chosen);
  const zoom = (factor: number, at?: number) => setChosen(zoomed(span, factor, tracks.whole, at));
  return (
    <div className="tracks card">
      <div className="tracks__bar">
        <div className="segmented" role="group" aria-label="Time that is shown">
          <button
            type="button"
            aria-pressed={span === tracks.cut}
            disabled={!tracks.cut}
            onClick={() => setChosen("cut")}
          >
            Around the cut
          </button>
          <button type="button" aria-pressed={span === tracks.whole} onClick={() => setChosen("whole")}>
            Whole move
          </button>
        </div>
        <span className="num muted small">{millis(span.to - span.from)} are shown</span>
        <span className="spring" />
        <div className="row tracks__zoom" role="group" aria-label="Zoom">
          <ZoomButton
            name="Earlier"
            icon={ChevronLeft}
            onClick={() => setChosen(shifted(span, -0.3, tracks.whole))}
          />
          <ZoomButton
            name="Later"
            icon={ChevronRight}
            onClick={() => setChosen(shifted(span, 0.3, tracks.whole))}
          />
          <ZoomButton name="Shorter time" icon={Plus} onClick={() => zoom(0.5)} />
          <ZoomButton name="Longer time" icon={Minus} onClick={() => zoom(2)} />
        </div>
      </div>
      <div className="tracks__body">
        <Picture tracks={tracks} span={span} handover={handover} onChoose={setChosen} />
        <Moments tracks={tracks} handover={handover} />
      </div>
    </div>
  );
}

function spanOf(tracks: Tracks, chosen: Span | "whole" | "cut" | null): Span {
  if (chosen === "whole") return tracks.whole;
  if (chosen === null || chosen === "cut") return tracks.cut ?? tracks.whole;
  return chosen;
}

function ZoomButton({ name, icon: Icon, onClick }: { name: string; icon: typeof Plus; onClick: () => void }) {
  return (
    <Tip text={name}>
      <button
        type="button"
        className="button button--quiet button--icon button--small"
        aria-label={name}
        onClick={onClick}
      >
        <Icon aria-hidden="true" />
      </button>
    </Tip>
  );
}

const DRAG_PX_MIN = 6;

function Picture({
  tracks,
  span,
  handover,
  onChoose,
}: {
  tracks: Tracks;
  span: Span;
  handover: Handover;
  onChoose: (span: Span) => void;
}) {
  const svg = useRef<SVGSVGElement>(null);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const x = (at: number): number => ((at - span.from) / (span.to - span.from)) * 100;
  const timeAt = (event: PointerEvent): number => {
    const box = event.currentTarget.getBoundingClientRect();
    const part = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    return span.from + part * (span.to - span.from);
  };
  const end = (event: PointerEvent) => {
    const width = svg.current?.getBoundingClientRect().width ?? 1;
    const to = timeAt(event);
    if (drag && (Math.abs(to - drag.from) / (span.to - span.from)) * width >= DRAG_PX_MIN)
      onChoose(zoomed({ from: Math.min(drag.from, to), to: Math.max(drag.from, to) }, 1, tracks.whole));
    setDrag(null);
  };
  return (
    <svg
      ref={svg}
      className="tracks__picture"
      height={HEIGHT}
      role="img"
      aria-label={`${handover.origin || "the old owner"} and ${handover.target} over time. The table has the same figures.`}
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        const from = timeAt(event);
        setDrag({ from, to: from });
      }}
      onPointerMove={(event) => drag && setDrag({ ...drag, to: timeAt(event) })}
      onPointerUp={end}
      onPointerCancel={() => setDrag(null)}
    >
      <Axis span={span} x={x} />
      <PhaseStrip tracks={tracks} x={x} />
      <TrackRow track={tracks.origin} place={ORIGIN} x={x} />
      <TrackRow track={tracks.target} place={TARGET} x={x} />
      <Wait tracks={tracks} handover={handover} x={x} />
      <Marks moments={tracks.moments} x={x} />
      {drag && (
        <rect
          className="tracks__drag"
          x={`${x(Math.min(drag.from, drag.to))}%`}
          width={`${x(Math.max(drag.from, drag.to)) - x(Math.min(drag.from, drag.to))}%`}
          y={0}
          height={AXIS}
        />
      )}
    </svg>
  );
}

type X = (at: number) => number;

/** What of a stretch is seen, in percent of the width; null when nothing is. */
function seen({ from, to }: Span, x: X): { left: number; width: number } | null {
  const left = Math.max(0, x(from));
  const right = Math.min(100, x(to));
  return right > left ? { left, width: right - left } : null;
}

function Axis({ span, x }: { span: Span; x: X }) {
  return (
    <g className="tracks__axis">
      {ticksOf(span, 7).map((tick, index) => (
        <g key={tick} className={index % 2 ? "tracks__odd" : undefined}>
          <line
            x1={`${x(tick)}%`}
            x2={`${x(tick)}%`}
            y1={PHASES.y}
            y2={AXIS}
            className={tick === 0 ? "tracks__zero" : ""}
          />
          {x(tick) > 6 && x(tick) < 94 && (
            <text x={`${x(tick)}%`} y={AXIS + 16} textAnchor="middle">
              {relative(tick)}
            </text>
          )}
        </g>
      ))}
    </g>
  );
}

function PhaseStrip({ tracks, x }: { tracks: Tracks; x: X }) {
  return (
    <g>
      <text x="0" y={PHASES.y - 6} className="tracks__name">
        Phases
      </text>
      {tracks.phases.map((phase, index) => {
        const part = seen(phase, x);
        if (!part) return null;
        const title = phaseTitle(phase.phase);
        return (
          <svg key={index} x={`${part.left}%`} width={`${part.width}%`} y={PHASES.y} height={PHASES.height}>
            <title>{`${title}: ${millis(phase.to - phase.from)}`}</title>
            <rect
              width="100%"
              height="100%"
              rx={3}
              className={`tracks__phase tracks__phase--${phase.state} tracks__phase--${index % 2}`}
            />
            {part.width > title.length * 1.1 + 1 && (
              <text x={6} y={15} className="tracks__in">
                {title}
              </text>
            )}
          </svg>
        );
      })}
    </g>
  );
}

function TrackRow({ track, place, x }: { track: Track; place: { y: number; height: number }; x: X }) {
  const lane = (place.height - 14) / LANES;
  return (
    <g>
      <text x="0" y={place.y - 22} className="tracks__name tracks__name--node">
        {track.node || "no node"}
      </text>
      <rect className="tracks__ground" x="0" width="100%" y={place.y} height={place.height} rx={4} />
      {track.stretches.map((stretch) => {
        const part = seen(stretch, x);
        return (
          part && (
            <svg
              key={stretch.role}
              x={`${part.left}%`}
              width={`${part.width}%`}
              y={place.y}
              height={place.height}
            >
              <title>{`${track.node} ${ROLES[stretch.role]}`}</title>
              <rect
                width="100%"
                height="100%"
                rx={4}
                className={`tracks__does tracks__does--${stretch.role}`}
              />
              {part.width > ROLES[stretch.role].length * 1.1 + 1 && (
                <text x={6} y={place.height - 5} className="tracks__in">
                  {ROLES[stretch.role]}
                </text>
              )}
            </svg>
          )
        );
      })}
      {track.batches.map((batch, index) => (
        <BatchBar key={index} batch={batch} y={place.y + 8 + (index % LANES) * lane * 0.8} x={x} />
      ))}
    </g>
  );
}

/** From when its oldest row came until it was committed. */
function BatchBar({ batch, y, x }: { batch: Drawn; y: number; x: X }) {
  const part = seen(batch, x);
  const end = x(batch.at);
  const waited = batch.wait_ms === null ? "" : `. Its oldest row had waited for ${millis(batch.wait_ms)}`;
  return (
    <g className="tracks__batch">
      <title>{`Batch of ${plural(batch.rows, "row")}, committed at ${relative(batch.at)}${waited}`}</title>
      {part && <rect x={`${part.left}%`} width={`${part.width}%`} y={y - 2} height={4} rx={2} />}
      {end >= 0 && end <= 100 && <circle cx={`${end}%`} cy={y} r={4} />}
    </g>
  );
}

/** How long rows waited for the new owner's first batch, and what of it is longer than usual. */
function Wait({ tracks, handover, x }: { tracks: Tracks; handover: Handover; x: X }) {
  const hatch = useId();
  const { wait } = tracks;
  if (!wait) return null;
  const usual = seen({ from: wait.from, to: wait.usual }, x);
  const longer = seen({ from: wait.usual, to: wait.to }, x);
  const end = x(wait.to);
  if (end < 0 || x(wait.from) > 100) return null;
  const left = end < 60;
  return (
    <g className="tracks__wait">
      <defs>
        <pattern id={hatch} width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <line x1="0" y1="0" x2="0" y2="6" className="tracks__hatch" />
        </pattern>
      </defs>
      {usual && (
        <rect
          x={`${usual.left}%`}
          width={`${usual.width}%`}
          y={WAIT.y}
          height={WAIT.height}
          fill={`url(#${hatch})`}
          className="tracks__usual"
        >
          <title>As long as rows usually wait</title>
        </rect>
      )}
      {longer && (
        <rect
          x={`${longer.left}%`}
          width={`${Math.max(0.25, longer.width)}%`}
          y={WAIT.y}
          height={WAIT.height}
          className="tracks__pause"
        >
          <title>The pause: longer than usual</title>
        </rect>
      )}
      <text
        x={`${left ? end : x(wait.from)}%`}
        dx={left ? 8 : -8}
        y={WAIT.y + 20}
        textAnchor={left ? "start" : "end"}
        className="tracks__told"
      >
        {handover.pause?.ms === 0 ? "No pause" : `Pause ${pauseTold(handover).value}`}
      </text>
    </g>
  );
}

const NUMBER_PX = 8;

/** A number at each moment that the table names, above one another where they are close. */
function Marks({ moments, x }: { moments: readonly Moment[]; x: X }) {
  const rows = { control: PHASES.y + 11, origin: ORIGIN.y - 10, target: TARGET.y - 10, both: ORIGIN.y - 10 };
  const last: Record<string, { at: number; step: number }> = {};
  return (
    <g className="tracks__marks">
      {moments.map((moment, index) => {
        const at = x(moment.at);
        if (at < 0 || at > 100) return null;
        const y = rows[moment.on];
        const before = last[y];
        const step = before && at - before.at < 2.6 ? before.step + 1 : 0;
        last[y] = { at, step };
        return (
          <g key={index}>
            <title>{`${moment.words}: ${relative(moment.at)}`}</title>
            {moment.on === "both" && (
              <line
                className="tracks__pass"
                x1={`${at}%`}
                x2={`${at}%`}
                y1={ORIGIN.y}
                y2={TARGET.y + TARGET.height}
              />
            )}
            {(moment.on === "origin" || moment.on === "target") && (
              <line className="tracks__stem" x1={`${at}%`} x2={`${at}%`} y1={y} y2={y + 10} />
            )}
            <svg x={`${at}%`} y={y} overflow="visible">
              <circle cx={Math.min(step, 3) * 2 * NUMBER_PX} r={NUMBER_PX} />
              <text x={Math.min(step, 3) * 2 * NUMBER_PX} y={4} textAnchor="middle">
                {index + 1}
              </text>
            </svg>
          </g>
        );
      })}
    </g>
  );
}

/** The same as a table: each moment, from the change of owner. */
function Moments({ tracks, handover }: { tracks: Tracks; handover: Handover }) {
  const passed = handover.measured.at_ms != null;
  return (
    <div className="tracks__table">
      <table className="table" aria-label="Moments of this move">
        <thead>
          <tr>
            <th>
              <span className="visually-hidden">Number in the picture</span>
            </th>
            <th>What happened</th>
            <th className="num">{passed ? "From the cut" : "From the order"}</th>
          </tr>
        </thead>
        <tbody>
          {tracks.moments.map((moment, index) => (
            <tr key={index}>
              <td>
                <span className="tracks__number">{index + 1}</span>
              </td>
              <td>{moment.words}</td>
              <td
                className="num"
                title={`${timeOfDay(tracks.zero_ms + moment.at)}, by the ${CLOCKS[moment.clock]} clock`}
              >
                {relative(moment.at)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const CLOCKS = { broker: "broker's", control: "control process's" };
