/** The lines of a file as they lie: what each is taken for, and where its delimiters stand. */
import { useMemo } from "react";
import { drawn, pieces } from "./lines";
import { pane, type Together } from "./together";
import type { Preview, PreviewLine, PreviewRow, Reading } from "./types";
import type { Decision } from "./use-decision";
import { kindWords } from "./words";

/** A line with more cells is drawn as plain text from there on. */
const CELLS_MAX = 120;

export function LinesPane({
  preview,
  decision,
  chosen,
  onChoose,
  panes,
  onScroll,
}: Together & {
  preview: Preview;
  decision: Decision;
  chosen: number | null;
  onChoose: (line: number) => void;
}) {
  const { reading } = decision;
  const rows = useMemo(() => new Map(preview.rows.map((row) => [row.line, row])), [preview]);
  const ref = useMemo(() => pane(panes), [panes]);
  const stop = preview.lines.some(({ number }) => number === chosen) ? chosen : preview.lines[0]?.number;
  return (
    <div className="pane__scroll" ref={ref} onScroll={onScroll}>
      <table className="lines" onKeyDown={goToNeighbour}>
        <thead>
          <tr>
            <th scope="col">
              <span className="visually-hidden">Number</span>
            </th>
            <th scope="col">
              <span className="pane__title">As it is in the file</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {preview.lines.map((line) => (
            <tr
              key={line.number}
              className={`file-line file-line--${line.kind}`}
              data-chosen={line.number === chosen}
              data-dead={!!rows.get(line.number)?.reject}
            >
              <th scope="row">
                <button
                  type="button"
                  className="line__number num"
                  aria-pressed={line.number === chosen}
                  aria-label={`Line ${line.number}${kindWords(line.kind) && `, ${kindWords(line.kind)}`}`}
                  tabIndex={line.number === stop ? 0 : -1}
                  onClick={() => onChoose(line.number)}
                >
                  {line.number}
                </button>
              </th>
              <td onClick={() => onChoose(line.number)}>
                {kindWords(line.kind) && <span className="line__kind">{kindWords(line.kind)}</span>}
                <LineText line={line} row={rows.get(line.number)} reading={reading} preview={preview} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** One stop of the Tab key for all lines; arrows go from line to line. */
function goToNeighbour(event: React.KeyboardEvent<HTMLElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const own = (event.target as HTMLElement).closest(".line__number");
  if (!step || !own) return;
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>(".line__number")];
  const next = all[all.indexOf(own as HTMLElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

function LineText({
  line,
  row,
  reading,
  preview,
}: {
  line: PreviewLine;
  row: PreviewRow | undefined;
  reading: Reading;
  preview: Preview;
}) {
  const divided = ["row", "header", "units"].includes(line.kind);
  const shown = line.text.replaceAll("\n", "↵");
  if (!divided || reading.kind !== "text") return <span className="line__text">{shown}</span>;
  const found = pieces(shown, reading.delimiter, reading.quote, reading.cuts);
  const cut = found.findIndex(({ cell }) => (cell ?? 0) >= CELLS_MAX);
  const marked = cut < 0 ? found : found.slice(0, cut);
  const bad = new Map(row?.unreadable.map(({ column, why }) => [preview.columns[column]?.source, why]) ?? []);
  return (
    <span className="line__text">
      {marked.map(({ text, cell }, at) =>
        cell === null ? (
          <span key={at} className="line__delimiter">
            {drawn(text)}
          </span>
        ) : bad.has(cell) ? (
          <span key={at} className="line__bad" title={bad.get(cell)}>
            {text || "∅"}
          </span>
        ) : (
          text
        ),
      )}
      {cut >= 0 && found.slice(cut).map(({ text }) => text)}
    </span>
  );
}
