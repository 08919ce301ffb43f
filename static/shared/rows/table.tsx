/** The table of rows: of a preview, a stream, a queue, dead letters and an imported file. */
import type { ReactNode } from "react";
import { CornerUpLeft } from "lucide-react";
import { typeWords } from "../column-types";
import { exact, instant, moment } from "../format";
import { Edges } from "../ui/edges";
import { isNumber, tableText, type RowColumn, type ShownRow } from "./cells";
import "./table.css";

/** What stands for the time of a row that has none. */
export const NO_TIME = "no time";

interface Props {
  label: string;
  columns: readonly RowColumn[];
  rows: readonly ShownRow[];
  /** whether the rows have a time of their own beside the columns */
  timed?: boolean;
  /** that time in words: of ms since the epoch */
  timeWords?: (time_ms: number) => string;
  /** for rows without a time: the first column says why each could not be taken */
  reasons?: boolean;
  /** whether the key of each record is shown */
  keyed?: boolean;
  /** opens a row; its time is the button, or else its reason */
  onOpen?: (row: ShownRow) => void;
  /** shows where a row came from */
  onTrace?: ((row: ShownRow) => void) | undefined;
  /** the row that is open */
  open?: string | null;
  /** stands above the first row to which it belongs */
  divider?: { before: string; words: ReactNode };
}

export function RowTable({
  label,
  columns,
  rows,
  timed = true,
  timeWords = moment,
  reasons = false,
  keyed = false,
  onOpen,
  onTrace,
  open,
  divider,
}: Props) {
  const numeric = columns.map((column, place) =>
    isNumber(
      column,
      rows.map(({ values }) => values[place]),
    ),
  );
  const width = columns.length + Number(timed) + Number(reasons) + Number(keyed);
  return (
    <Edges className="rowtable-place">
      {(ref) => (
        // it is scrolled by keyboard too
        <div ref={ref} className="rowtable" tabIndex={0} role="region" aria-label={label}>
          <table className="rowtable__table">
            <thead>
              <tr>
                {timed && <th scope="col">Time</th>}
                {reasons && <th scope="col">Reason</th>}
                {columns.map((column, place) => (
                  <th key={column.name} scope="col" className={numeric[place] ? "num" : undefined}>
                    <span className="rowtable__name mono" title={column.name}>
                      {column.name}
                    </span>
                    {column.type && (
                      <span className="rowtable__type">
                        {typeWords(column.type)}
                        {column.unit && ` · ${column.unit}`}
                      </span>
                    )}
                  </th>
                ))}
                {keyed && <th scope="col">Key</th>}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => [
                divider?.before === row.id && (
                  <tr key="divider" className="rowtable__divider">
                    <td colSpan={width}>{divider.words}</td>
                  </tr>
                ),
                <tr
                  key={row.id}
                  data-bad={row.reason != null}
                  data-tone={row.tone}
                  data-open={open === row.id}
                  title={timed || reasons ? undefined : (row.reason ?? undefined)}
                >
                  {timed && (
                    <td className="muted num">
                      {onTrace && <Trace row={row} onTrace={onTrace} />}
                      <Time row={row} words={timeWords} onOpen={onOpen} isOpen={open === row.id} />
                      {row.reason != null && <span className="rowtable__reason">{row.reason}</span>}
                    </td>
                  )}
                  {reasons && (
                    <td>
                      <Reason row={row} onOpen={onOpen} isOpen={open === row.id} />
                    </td>
                  )}
                  {columns.map((column, place) => (
                    <td key={column.name} className={numeric[place] ? "num" : undefined}>
                      {tableText(row.values[place], column) ?? <span className="muted">no value</span>}
                    </td>
                  ))}
                  {keyed && <td className="muted">{row.key}</td>}
                </tr>,
              ])}
            </tbody>
          </table>
        </div>
      )}
    </Edges>
  );
}

function Trace({ row, onTrace }: { row: ShownRow; onTrace: (row: ShownRow) => void }) {
  const then = instant(row.at);
  return (
    <button
      type="button"
      className="rowtable__trace"
      title="Where did this row come from?"
      aria-label={`Where did the row of ${then === null ? NO_TIME : moment(then)} come from?`}
      onClick={() => onTrace(row)}
    >
      <CornerUpLeft aria-hidden="true" />
    </button>
  );
}

interface Opening {
  row: ShownRow;
  onOpen?: ((row: ShownRow) => void) | undefined;
  isOpen: boolean;
}

function Reason({ row, onOpen, isOpen }: Opening) {
  if (!onOpen) return <span className="rowtable__reason">{row.reason}</span>;
  return (
    <button
      type="button"
      className="rowtable__open rowtable__reason"
      title="Open the row"
      aria-label={`Open the row: ${row.reason ?? ""}`}
      aria-expanded={isOpen}
      onClick={() => onOpen(row)}
    >
      {row.reason}
    </button>
  );
}

function Time({ row, words, onOpen, isOpen }: Opening & { words: (time_ms: number) => string }) {
  const then = instant(row.at);
  const text = then === null ? NO_TIME : words(then);
  const place = row.record ? `, partition ${row.record.partition}, offset ${row.record.offset}` : "";
  const title = `${exact(row.at)}${place}`;
  if (!onOpen) return <span title={title}>{text}</span>;
  return (
    <button
      type="button"
      className="rowtable__open"
      title={title}
      aria-label={`Open the row of ${text}`}
      aria-expanded={isOpen}
      onClick={() => onOpen(row)}
    >
      {text}
    </button>
  );
}
