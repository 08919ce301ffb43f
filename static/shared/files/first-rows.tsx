import { typeWords } from "../column-types";
import { Skeleton, useLoaded } from "../ui/parts";
import { previewOf } from "./files";
import type { FileDetail } from "./types";
import { rows, timeText } from "./words";
import "./files.css";

const ROWS = 6;
const COLUMNS = 12;

/** The first rows of an imported table. */
export function FirstRows({ file }: { file: FileDetail }) {
  const { reading } = file;
  const { data, error } = useLoaded(`first ${file.id}`, (signal) =>
    reading ? previewOf(file.id, { reading }, signal) : Promise.resolve(null),
  );
  if (error || data === null) return null;
  if (!data) return <Skeleton lines={4} />;
  const { columns, rows: all } = data.preview;
  const shown = all.slice(0, ROWS);
  const more = columns.length - COLUMNS;
  return (
    <div className="look">
      {/* it is scrolled by keyboard too */}
      <div className="look__scroll" tabIndex={0} role="group" aria-label="The first rows">
        <table className="look__table">
          <thead>
            <tr>
              {columns.slice(0, COLUMNS).map((column) => (
                <th key={column.source} scope="col">
                  <span className="look__name mono" title={column.name}>
                    {column.name}
                  </span>
                  <span className="look__type">
                    {typeWords(column.type)}
                    {column.unit && ` · ${column.unit}`}
                  </span>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <tr key={row.line} data-bad={!!row.reject} title={row.reject ?? undefined}>
                {columns.slice(0, COLUMNS).map(({ source, type }, at) => (
                  <td key={source} className={type === "number" || type === "integer" ? "num" : undefined}>
                    {row.values[at] == null ? (
                      <span className="muted">no value</span>
                    ) : type === "timestamp" ? (
                      timeText(String(row.values[at]))
                    ) : (
                      String(row.values[at])
                    )}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className="field__help">
        The first {shown.length} of {rows(file.rows ?? all.length)}
        {more > 0 && ` and the first ${COLUMNS} of ${columns.length} columns`}.
      </p>
    </div>
  );
}
