/** Rows as every table of rows shows them: what a cell says, and which columns there are. Pure. */
import { instant, moment } from "../format";
import type { PeekRecord } from "../types";

export interface RowColumn {
  name: string;
  /** nothing where nobody knows it */
  type?: string | undefined;
  unit?: string | null | undefined;
  /** of each number; as many as it has where nobody says it */
  decimals?: number | undefined;
}

export interface ShownRow {
  /** tells it from the other rows of the table */
  id: string;
  at: string | null;
  key: string | null;
  /** in the order of the columns */
  values: unknown[];
  /** why an element could not take it */
  reason?: string | null;
  /** the text that the element was given, where the values were read from it */
  came?: string;
  /** where it lies and since when, as a sentence; nothing where `record` says it */
  lies?: string;
  /** the whole record as it lies in its topic */
  record?: PeekRecord;
  tone?: "waits";
}

export const isNumber = (column: RowColumn, values: readonly unknown[] = []): boolean =>
  column.type === undefined
    ? values.length > 0 && values.every((value) => value == null || typeof value === "number")
    : column.type === "number" || column.type === "integer";

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)$/;

/** A value with all its digits, and a time as all others of the page. Nothing stands for no value. */
export function cellText(value: unknown, type?: string, decimals?: number): string | null {
  if (value == null) return null;
  if (typeof value === "number" && decimals !== undefined) return value.toFixed(decimals);
  if (typeof value === "object") return JSON.stringify(value);
  const text = String(value);
  if (type === undefined ? !ISO.test(text) : type !== "timestamp") return text;
  const then = instant(text);
  return then === null ? text : moment(then);
}

/** The digits that a float holds for sure. Those behind them come from arithmetic: -17.219999999999995 is -17.22. */
const SURE_DIGITS = 15;

/** A value as a table shows it: of a float, the digits that are sure. The whole record has all of them. */
export function tableText(value: unknown, { type, decimals }: RowColumn): string | null {
  const sure =
    typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(SURE_DIGITS)) : value;
  return cellText(sure, type, decimals);
}

const fieldsOf = (value: unknown): Record<string, unknown> | null =>
  value !== null && typeof value === "object" && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;

/** The columns of records: those of the stream where they are known, else each name that a record has. */
export function columnsOf(records: readonly PeekRecord[], known?: readonly RowColumn[]): RowColumn[] {
  if (known) return [...known];
  const names = new Set(records.flatMap(({ value }) => Object.keys(fieldsOf(value) ?? {})));
  return names.size ? [...names].map((name) => ({ name })) : [{ name: "value" }];
}

/** A record as a row. One that is no object stands whole in the first column. */
export function rowOf(record: PeekRecord, columns: readonly RowColumn[]): ShownRow {
  const fields = fieldsOf(record.value);
  const values = fields
    ? columns.map(({ name }) => fields[name])
    : columns.map((_, place) => (place === 0 ? record.value : undefined));
  const id = `${record.partition}/${record.offset}`;
  return { id, at: record.at, key: record.key, values, record };
}

/** Newest first. */
export const newestFirst = (records: readonly PeekRecord[]): PeekRecord[] =>
  [...records].sort((a, b) => (instant(b.at) ?? 0) - (instant(a.at) ?? 0) || b.offset - a.offset);
