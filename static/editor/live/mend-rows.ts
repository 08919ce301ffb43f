/** The rows of dead letters while somebody mends them. Pure. */
import type { ShownRow } from "../../shared/rows/cells";
import type { Fault, LetterRows } from "../../shared/types";
import { typesNeeded } from "../../shared/column-types";

/** The event time stands before the columns of a row. */
export const AT = "_time";

export interface MendColumn {
  name: string;
  type: string;
}

export interface MendRow {
  offset: number;
  /** the row as its letter quotes it */
  raw: string;
  reason: string;
  key: string | null;
  /** the partition and the offset of the row */
  liesAt: string | null;
  /** by column, the event time first; an empty cell is no value */
  cells: string[];
}

const TIME_COLUMN: MendColumn = { name: AT, type: "timestamp" };

export function columnsOf({ columns }: LetterRows): MendColumn[] {
  return [TIME_COLUMN, ...columns.map(({ name, type }) => ({ name, type }))];
}

export function rowsOf({ columns, rows }: LetterRows): MendRow[] {
  return rows.map((row) => ({
    offset: row.offset,
    raw: row.raw,
    reason: row.reason,
    key: row.key,
    liesAt: row.lies_at && `${row.lies_at.partition}/${row.lies_at.offset}`,
    cells: [row.at ?? "", ...columns.map(({ name }) => textOf(row.cells[name]))],
  }));
}

/** A row as it opens whole: what came, and what its cells say now. `topic`: in which the row lies. */
export function wholeOf(row: MendRow, topic: string): ShownRow {
  const { offset, raw, reason, key, liesAt, cells } = row;
  const [at, ...values] = cells;
  const [partition, place] = liesAt?.split("/") ?? [];
  const lies = liesAt === null ? "" : `, topic ${topic}, partition ${partition}, offset ${place}`;
  return {
    id: String(offset),
    // half of a time may read as another one
    at: at !== undefined && cellFault(at, TIME_COLUMN) === null ? at : null,
    key,
    reason,
    came: raw,
    values: values.map((cell) => (cell === "" ? null : cell)),
    lies: `Letter ${offset}, ${key === null ? "no key" : `key ${key}`}${lies}.`,
  };
}

const textOf = (value: unknown): string => (value == null ? "" : String(value as string | number | boolean));

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;
const MOMENT = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/;
const TIME = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)? ?(Z|z|UTC|GMT|[+-]\d\d:?\d\d)?$/;

/** What is wrong with a cell; null if nothing is. The server looks once more. */
export function cellFault(text: string, column: MendColumn): string | null {
  const said = text.trim();
  if (column.name === AT) {
    if (said === "") return "the event time is not known: enter it";
    return MOMENT.test(said) ? null : "a time with its zone is needed, such as 2024-05-01T12:00:00Z";
  }
  if (said === "" || column.type === "string") return null;
  const fits = {
    number: () => NUMBER.test(said) && Number.isFinite(Number(said)),
    integer: () => NUMBER.test(said) && Number.isInteger(Number(said)),
    boolean: () => /^(true|false)$/i.test(said),
    timestamp: () => TIME.test(said),
  }[column.type];
  return !fits || fits() ? null : `${typesNeeded([column.type])} is needed`;
}

/** By "offset.column": what is wrong there. */
export type Faults = ReadonlyMap<string, string>;

export const placeOf = (row: MendRow, column: MendColumn): string => `${row.offset}.${column.name}`;

export function faultsIn(rows: readonly MendRow[], columns: readonly MendColumn[]): Faults {
  const found = new Map<string, string>();
  for (const row of rows)
    columns.forEach((column, index) => {
      const fault = cellFault(row.cells[index] ?? "", column);
      if (fault !== null) found.set(placeOf(row, column), fault);
    });
  return found;
}

/** What the server found wrong. */
export function faultsTold(faults: readonly Fault[]): Faults {
  const found = new Map<string, string>();
  for (const { path, message } of faults)
    if (path.startsWith("rows.")) found.set(path.slice("rows.".length), message);
  return found;
}

const withCell = (row: MendRow, column: number, text: string): MendRow => ({
  ...row,
  cells: row.cells.map((cell, index) => (index === column ? text : cell)),
});

export const changed = (rows: readonly MendRow[], row: number, column: number, text: string): MendRow[] =>
  rows.map((each, index) => (index === row ? withCell(each, column, text) : each));

/** Cells of a spreadsheet, pasted with their first one at this place. What goes over the edge is left out. */
export function pasted(rows: readonly MendRow[], row: number, column: number, text: string): MendRow[] {
  const lines = text.replace(/\r\n?/g, "\n").replace(/\n$/, "").split("\n");
  return rows.map((each, index) => {
    const cells = lines[index - row]?.split("\t");
    return index < row || !cells
      ? each
      : cells.reduce((so_far, cell, at) => withCell(so_far, column + at, cell), each);
  });
}

/** Whether a pasted text is several cells. */
export const isTable = (text: string): boolean => /[\t\n]/.test(text.replace(/\r?\n$/, ""));

/** All rows with a text replaced in one column; an empty text to look for stands for the whole cell. */
export function replacedIn(rows: readonly MendRow[], column: number, from: string, to: string): MendRow[] {
  return rows.map((row) => {
    const before = row.cells[column] ?? "";
    return withCell(row, column, from === "" ? to : before.split(from).join(to));
  });
}

/** How many cells differ. */
export function changes(before: readonly MendRow[], after: readonly MendRow[]): number {
  let count = 0;
  after.forEach((row, index) =>
    row.cells.forEach((cell, column) => (count += cell === before[index]?.cells[column] ? 0 : 1)),
  );
  return count;
}

/** What `POST …/dead-letters/replay` is given. */
export function replayBody(rows: readonly MendRow[], columns: readonly MendColumn[], reason: string) {
  return {
    offsets: rows.map((row) => row.offset),
    reason,
    rows: rows.map((row) => ({
      offset: row.offset,
      at: (row.cells[0] ?? "").trim() || null,
      cells: Object.fromEntries(
        columns.slice(1).map(({ name }, index) => [name, row.cells[index + 1] || null]),
      ),
    })),
  };
}

/** The rows of a page, with their places among all. */
export const pageOf = (rows: readonly MendRow[], page: number, size: number): [MendRow, number][] =>
  rows.slice(page * size, (page + 1) * size).map((row, index) => [row, page * size + index]);
