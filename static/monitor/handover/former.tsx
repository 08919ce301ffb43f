/** How former moves of the element went, beside this one. */
import { useState } from "react";
import { ArrowRight } from "lucide-react";
import { bytes, millis, plural } from "../../shared/format";
import type { Handover, HandoverDetails } from "../../shared/types";
import { Ago } from "../../shared/ui/parts";

type Spread = NonNullable<HandoverDetails["former"]["pause_ms"]>;

/** "usually 24 ms, 95 % within 60 ms, longest 71 ms": of few moves, only what they can say. */
export function spreadWords(spread: Spread | null, told: (value: number) => string): string {
  if (!spread) return "no former move to compare with";
  if (spread.most === 0) return `${told(0)} in all of ${plural(spread.n, "former move")}`;
  const of = `of ${plural(spread.n, "former move")}`;
  if (spread.n === 1) return `${told(spread.p50)} in the one former move`;
  const most = `longest ${told(spread.most)}`;
  const middle = spread.n >= 20 ? `95 % within ${told(spread.p95)}, ${most}` : most;
  return `usually ${told(spread.p50)}, ${middle}, ${of}`;
}

const STRIP = { height: 64, y: 26, axis: 42 };
const ROWS = 8;

export function FormerMoves({ handover, former }: { handover: Handover; former: HandoverDetails["former"] }) {
  const [all, setAll] = useState(false);
  const { moves, pause_ms: spread } = former;
  if (!moves.length)
    return (
      <p className="muted small">It was not moved this way before, so there is nothing to compare with.</p>
    );
  return (
    <div className="card card__body former">
      {spread && spread.n > 1 && spread.most > 0 && (
        <Strip handover={handover} former={former} spread={spread} />
      )}
      <div className="table-wrap">
        <table className="table" aria-label="Former moves">
          <thead>
            <tr>
              <th>When</th>
              <th>Way</th>
              <th className="num">Getting ready</th>
              <th className="num">Pause</th>
              <th className="num">Copied</th>
            </tr>
          </thead>
          <tbody>
            {(all ? moves : moves.slice(0, ROWS)).map((move) => (
              <tr key={move.id}>
                <td>
                  <a href={`/handovers/${encodeURIComponent(move.id)}`}>
                    <Ago at={move.ended_at} />
                  </a>
                </td>
                <td>
                  <span className="handover__way">
                    {move.origin || "checkpoint"} <ArrowRight aria-label="to" /> {move.target}
                  </span>
                </td>
                <td className="num">{millis(move.ready_ms)}</td>
                <td className="num">{millis(move.pause_ms)}</td>
                <td className="num">{bytes(move.bytes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {moves.length > ROWS && !all && (
        <button type="button" className="button button--small" onClick={() => setAll(true)}>
          Show all {moves.length}
        </button>
      )}
    </div>
  );
}

/** The pause of each move as a dot, this one's in its own colour. */
function Strip({
  handover,
  former,
  spread,
}: {
  handover: Handover;
  former: HandoverDetails["former"];
  spread: Spread;
}) {
  const own = handover.pause?.ms ?? null;
  const end = Math.max(spread.most, own ?? 0, 1) * 1.08;
  const x = (ms: number): string => `${2 + (ms / end) * 96}%`;
  const ranks: [string, number][] =
    spread.n >= 20
      ? [
          ["half", spread.p50],
          ["95 %", spread.p95],
        ]
      : [["half", spread.p50]];
  return (
    <svg
      className="former__strip"
      height={STRIP.height}
      role="img"
      aria-label={`Pauses of former moves: ${spreadWords(spread, millis)}`}
    >
      <line className="former__line" x1="2%" x2="98%" y1={STRIP.axis} y2={STRIP.axis} />
      <text x="2%" y={STRIP.axis + 17}>
        0 ms
      </text>
      <text x="98%" y={STRIP.axis + 17} textAnchor="end">
        {millis(Math.round(end))} pause
      </text>
      {ranks.map(([name, ms]) => (
        <g key={name}>
          <line className="former__rank" x1={x(ms)} x2={x(ms)} y1={14} y2={STRIP.axis} />
          <text x={x(ms)} y={10} textAnchor={ms / end < 0.1 ? "start" : "middle"}>
            {name}
          </text>
        </g>
      ))}
      {former.moves.map(
        (move) =>
          move.pause_ms !== null && (
            <a
              key={move.id}
              href={`/handovers/${encodeURIComponent(move.id)}`}
              tabIndex={-1}
              aria-hidden="true"
            >
              <circle className="former__dot" cx={x(move.pause_ms)} cy={STRIP.y} r={5}>
                <title>{`${move.origin} to ${move.target}: ${millis(move.pause_ms)}`}</title>
              </circle>
            </a>
          ),
      )}
      {own !== null && (
        <circle className="former__this" cx={x(own)} cy={STRIP.y} r={6}>
          <title>{`This move: ${millis(own)}`}</title>
        </circle>
      )}
    </svg>
  );
}
