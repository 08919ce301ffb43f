/** The rows of a preview. */
import { typeWords } from "../../shared/column-types";
import { exact, instant, moment } from "../../shared/format";
import type { ElementPreview } from "../../shared/types";
import { shownWords } from "./path";

type Stream = NonNullable<ElementPreview["output"]>;
type Column = Stream["columns"][number];

const isNumber = ({ type }: Column): boolean => type === "number" || type === "integer";

function cell(value: unknown, column: Column) {
  if (value == null) return <span className="muted">no value</span>;
  if (column.type === "timestamp") return moment(instant(String(value)) ?? 0);
  return String(value);
}

export function PreviewTable({
  stream,
  newest,
  nothing,
}: {
  stream: Stream;
  newest: boolean;
  nothing?: string;
}) {
  const { columns, rows, count } = stream;
  if (rows.length === 0) return <p className="muted small">{nothing ?? "No rows come to it."}</p>;
  return (
    <div className="stack stack--tight">
      {/* it is scrolled by keyboard too */}
      <div className="preview__scroll" tabIndex={0} role="region" aria-label={`Rows of ${stream.title}`}>
        <table className="preview__table">
          <thead>
            <tr>
              <th scope="col">Time</th>
              {columns.map((column) => (
                <th key={column.name} scope="col" className={isNumber(column) ? "num" : undefined}>
                  <span className="mono">{column.name}</span>
                  <span className="preview__type">
                    {typeWords(column.type)}
                    {column.unit && ` · ${column.unit}`}
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={at} data-bad={row.reason !== null}>
                <td className="muted num" title={exact(row.at)}>
                  {moment(instant(row.at) ?? 0)}
                  {row.reason !== null && <span className="preview__reason">{row.reason}</span>}
                </td>
                {columns.map((column, place) => (
                  <td key={column.name} className={isNumber(column) ? "num" : undefined}>
                    {cell(row.values[place], column)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className="field__help">{shownWords(rows.length, count, newest)}.</p>
    </div>
  );
}

export function PreviewLetters({ letters, count }: { letters: ElementPreview["letters"]; count: number }) {
  return (
    <div className="stack stack--tight">
      <ul className="preview__letters">
        {letters.map((letter, at) => (
          <li key={at}>
            <b>{letter.reason}</b>
            {letter.raw && <code className="code">{letter.raw}</code>}
          </li>
        ))}
      </ul>
      <p className="field__help">{shownWords(letters.length, count, false)} that it could not take.</p>
    </div>
  );
}
