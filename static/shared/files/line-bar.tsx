/** What the chosen line is: column names, units, or the first row. */
import { fixLine, type LineUse } from "./fix";
import type { Decision } from "./use-decision";
import { kindWords } from "./words";

const USES: readonly (readonly [LineUse, string])[] = [
  ["header_line", "Column names"],
  ["units_line", "Units"],
  ["first_line", "First row"],
  ["last_line", "Last row"],
];

export function LineBar({ decision, line }: { decision: Decision; line: number | null }) {
  const { reading, preview, changes, change } = decision;
  if (!["text", "xlsx"].includes(reading.kind)) return null;
  if (line === null)
    return (
      <p className="pane__bar muted">
        Choose a line to mark it as names, units, the first row or the last row.
      </p>
    );
  const kind = preview?.lines.find(({ number }) => number === line)?.kind;
  return (
    <div className="pane__bar" role="group" aria-label={`Line ${line}`}>
      <span>
        Line <b className="num">{line}</b>
        <span className="visually-hidden">{kind && ` is taken for ${kindWords(kind) || "a row"}`}</span>
      </span>
      <div className="segmented segmented--small">
        {USES.map(([use, words]) => (
          <button
            key={use}
            type="button"
            aria-pressed={reading[use] === line}
            onClick={() => change(fixLine(changes, use, reading[use] === line ? null : line))}
          >
            {words}
          </button>
        ))}
      </div>
    </div>
  );
}
