/** One row whole, below the table from which it was opened. */
import type { ReactNode } from "react";
import { X } from "lucide-react";
import { typeWords } from "../column-types";
import { exact, instant, moment } from "../format";
import { cellText, type RowColumn, type ShownRow } from "./cells";

interface Props {
  row: ShownRow;
  columns: readonly RowColumn[];
  /** whether the rows of the table have times */
  timed?: boolean;
  onClose: () => void;
  /** what can be done with it */
  actions?: ReactNode;
}

export function WholeRow({ row, columns, timed = true, onClose, actions }: Props) {
  const then = instant(row.at);
  const { record, key } = row;
  const lies =
    row.lies ??
    (record && `Key ${key === null ? "none" : key}, partition ${record.partition}, offset ${record.offset}.`);
  return (
    <section className="wholerow" aria-label="The row">
      <div className="row row--between">
        <b className="num" title={exact(row.at)}>
          {then !== null ? moment(then) : timed && "Its time is not known"}
        </b>
        <button
          type="button"
          className="button button--quiet button--icon button--small"
          aria-label="Close the row"
          onClick={onClose}
        >
          <X aria-hidden="true" />
        </button>
      </div>
      {row.reason != null && <p className="rowtable__reason">{row.reason}</p>}
      <dl className="wholerow__fields">
        {columns.map((column, place) => (
          <div key={column.name}>
            <dt>
              <span className="mono">{column.name}</span>
              {column.type && (
                <span className="muted small">
                  {" "}
                  {typeWords(column.type)}
                  {column.unit && ` · ${column.unit}`}
                </span>
              )}
            </dt>
            <dd>{cellText(row.values[place], column.type) ?? <span className="muted">no value</span>}</dd>
          </div>
        ))}
      </dl>
      {row.came !== undefined && <code className="code wholerow__came">{row.came}</code>}
      {lies && <p className="field__help">{lies}</p>}
      {actions && <div className="row row--wrap">{actions}</div>}
    </section>
  );
}
