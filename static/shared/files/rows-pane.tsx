/** The same lines as they are read: typed values, and what has none. */
import { useMemo, useState } from "react";
import { ChevronLeft, ChevronRight } from "lucide-react";
import { typeWords } from "../column-types";
import { count } from "../format";
import { timeText } from "./words";
import { pane, type Together } from "./together";
import type { Preview, PreviewColumn, PreviewLine, PreviewRow, Source } from "./types";

/** Columns of a table that are drawn at once. */
const COLUMNS_SHOWN = 40;

const SAYS: Record<PreviewLine["kind"], string> = {
  preamble: "Not part of the table",
  comment: "Comment: passed over",
  header: "Column names",
  units: "Units",
  row: "Not read",
  footer: "Not part of the table",
};

export function RowsPane({
  preview,
  chosen,
  onChoose,
  panes,
  onScroll,
}: Together & {
  preview: Preview;
  chosen: Source | null;
  onChoose: (column: Source) => void;
}) {
  const rows = useMemo(() => new Map(preview.rows.map((row) => [row.line, row])), [preview]);
  const ref = useMemo(() => pane(panes), [panes]);
  const [from, setFrom] = useState(0);
  const begin = Math.min(from, Math.max(0, preview.columns.length - 1));
  const shown = preview.columns.slice(begin, begin + COLUMNS_SHOWN);
  const timed = preview.rows.some(({ time, reject }) => time !== null || reject !== null);
  return (
    <>
      <div className="pane__scroll" ref={ref} onScroll={onScroll}>
        <table className="rows">
          <thead>
            <tr>
              {timed && (
                <th scope="col" className="rows__time">
                  <span className="pane__title">Time of the row</span>
                  <span className="rows__type">in UTC</span>
                </th>
              )}
              {shown.map((column) => (
                <ColumnHead
                  key={column.source}
                  column={column}
                  chosen={column.source === chosen}
                  onChoose={() => onChoose(column.source)}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            {preview.lines.map((line) => {
              const row = rows.get(line.number);
              return row ? (
                <ReadRow key={line.number} row={row} columns={shown} first={begin} timed={timed} />
              ) : (
                <tr key={line.number} className={`rows__other file-line--${line.kind}`}>
                  <td colSpan={shown.length + (timed ? 1 : 0) || 1}>{SAYS[line.kind]}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {preview.columns.length > COLUMNS_SHOWN && (
        <Pager total={preview.columns.length} begin={begin} onGo={setFrom} />
      )}
    </>
  );
}

function Pager({ total, begin, onGo }: { total: number; begin: number; onGo: (from: number) => void }) {
  const end = Math.min(total, begin + COLUMNS_SHOWN);
  return (
    <div className="pager">
      <span className="num">
        Columns {count(begin + 1)} to {count(end)} of {count(total)}
      </span>
      <button
        type="button"
        className="button button--quiet button--icon button--small"
        aria-label="Columns before these"
        disabled={begin === 0}
        onClick={() => onGo(Math.max(0, begin - COLUMNS_SHOWN))}
      >
        <ChevronLeft aria-hidden="true" />
      </button>
      <button
        type="button"
        className="button button--quiet button--icon button--small"
        aria-label="Columns after these"
        disabled={end === total}
        onClick={() => onGo(begin + COLUMNS_SHOWN)}
      >
        <ChevronRight aria-hidden="true" />
      </button>
    </div>
  );
}

function ColumnHead({
  column,
  chosen,
  onChoose,
}: {
  column: PreviewColumn;
  chosen: boolean;
  onChoose: () => void;
}) {
  const { name, type, unit, unreadable, is_time } = column;
  return (
    <th scope="col" data-chosen={chosen}>
      <button type="button" className="rows__head" aria-pressed={chosen} title={name} onClick={onChoose}>
        <span className="rows__name">{name}</span>
        <span className="rows__type">
          {is_time ? "time" : typeWords(type)}
          {unit && ` · ${unit}`}
          {unreadable > 0 && <span className="rows__bad">{count(unreadable)} not read</span>}
        </span>
      </button>
    </th>
  );
}

function ReadRow({
  row,
  columns,
  first,
  timed,
}: {
  row: PreviewRow;
  columns: PreviewColumn[];
  first: number;
  timed: boolean;
}) {
  const bad = new Map(row.unreadable.map((cell) => [cell.column, cell]));
  return (
    <tr data-dead={!!row.reject}>
      {timed && (
        <td className="rows__time num" title={row.reject ?? undefined}>
          {row.reject ? <span className="rows__bad">{row.reject}</span> : timeText(row.time)}
        </td>
      )}
      {columns.map((column, at) => {
        const cell = bad.get(first + at);
        return cell ? (
          <td key={column.source} className="rows__unread" title={`Not read: ${cell.why}`}>
            <s>{cell.text}</s> <span className="visually-hidden">not read: {cell.why}</span>
          </td>
        ) : (
          <td key={column.source} className={isNumber(column) ? "num" : undefined}>
            <Value value={row.values[first + at]} type={column.type} />
          </td>
        );
      })}
    </tr>
  );
}

const isNumber = ({ type }: PreviewColumn): boolean => type === "number" || type === "integer";

function Value({ value, type }: { value: unknown; type: string }) {
  if (value === null || value === undefined) return <span className="rows__null">no value</span>;
  if (type === "timestamp") return timeText(String(value));
  return String(value);
}
