/**
 * A data file that is a table: what the server found in its first rows, and the parameters that follow.
 * Pure.
 */
import { millis, plural } from "../../shared/format";
import type { JsonSchema } from "../../shared/types";

/** `x-table` of an operator's file parameter. */
export interface TableHint {
  /** parameters that say how the file is read; they have the names that the preview takes */
  reads: string[];
  /** of them: the time column's name, and its format */
  time: [string, string];
  /** what is set beside, of a file in which no column is a time */
  without_time: Record<string, unknown>;
}

export interface TimeReading {
  format: string;
  words: string;
  zone: "written" | "assumed";
  first: string;
  step_s: number | null;
  rows: number;
  unread: number;
  back: number;
  elapsed: boolean;
}

export interface TableColumn {
  name: string;
  type: string;
  /** of a text column in which all but some values are of another type */
  near: { type: string; others: number; line: number; text: string } | null;
  times: TimeReading[];
}

export interface TablePreview {
  delimiter: string;
  decimal: string;
  header: boolean;
  columns: TableColumn[];
  columns_total: number;
  first: { line: number; cells: string[]; bad: boolean }[];
  rows: number;
  whole: boolean;
  rows_about: number | null;
  bad: { line: number; reason: string; text: string }[];
  bad_total: number;
  time_column: string | null;
  time_format: string | null;
  replaced: number;
  fixed: boolean;
}

type Params = Record<string, unknown>;

export const tableOf = (schema: JsonSchema): TableHint | null => (schema["x-table"] as TableHint) ?? null;

/** The question to the server: the file, and the parameters that say how to read it. */
export function question(table: TableHint, reference: string, params: Params): Params {
  const said = table.reads.filter((name) => params[name] != null && params[name] !== "");
  return { path: reference, ...Object.fromEntries(said.map((name) => [name, params[name]])) };
}

/** The changes of the parameters when another file is chosen; undefined takes one out. */
export function proposed(table: TableHint, found: TablePreview, params: Params): Params {
  const changes: Params = Object.fromEntries(table.reads.map((name) => [name, undefined]));
  if (!found.fixed) {
    changes.delimiter = found.delimiter === "\t" ? "tab" : found.delimiter;
    changes.decimal = found.decimal;
    changes.header = found.header;
  }
  return { ...changes, ...timed(table, found.time_column, found.time_format, params) };
}

/** The changes that make this column the time, or none. */
export function timed(
  table: TableHint,
  column: string | null,
  format: string | null | undefined,
  params: Params,
): Params {
  const [columnName, formatName] = table.time;
  const changes: Params = {
    [columnName]: column ?? undefined,
    [formatName]: (column && format) || undefined,
  };
  for (const [name, value] of Object.entries(table.without_time)) {
    // parameters that were set because there was no time column are removed
    if (column && params[name] === value) changes[name] = undefined;
    if (!column && params[name] == null) changes[name] = value;
  }
  return changes;
}

/** With the changes; an undefined value takes its parameter out, so that the operator's default holds. */
export function patched(params: Params, changes: Params): Params {
  return Object.fromEntries(
    Object.entries({ ...params, ...changes }).filter(([, value]) => value !== undefined),
  );
}

/** The columns as a parameter that reads one of them as another type. */
export const withType = (columns: TableColumn[], name: string, type: string) =>
  columns.map((column) => ({ name: column.name, type: column.name === name ? type : column.type }));

const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium", timeZone: "UTC" });
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", timeZone: "UTC" });

function stepWords(step_s: number): string {
  if (step_s < 100) return millis(step_s * 1000).replace(/\.0+ /, " ");
  if (step_s < 3600) return `${Math.round(step_s / 60)} min`;
  return step_s < 172_800 ? `${Math.round(step_s / 3600)} h` : plural(Math.round(step_s / 86_400), "day");
}

/** What a column says about a row's time, and how a replay uses it. */
export function timeSays(column: string, reading: TimeReading): string[] {
  const every = reading.step_s === null ? "" : `, and one follows about every ${stepWords(reading.step_s)}`;
  const first = new Date(reading.first);
  const timeOfDay = reading.first.startsWith("1900-01-01");
  const says = [
    reading.elapsed
      ? `${column} counts ${reading.words}${every}.`
      : `${column} is the time of a row, read as ${reading.words}. The time of the first row is ${(timeOfDay ? CLOCK : DAY).format(first)} UTC${every}.`,
  ];
  if (reading.zone === "assumed") says.push("It names no time zone, so it is read as UTC.");
  if (reading.back > reading.rows / 10)
    says.push(
      "Most rows go back in time, as in a file with the newest row first. At their recorded times they would all come at once. Sort the file by time, or choose rows per second.",
    );
  else if (reading.back > 0)
    says.push(
      `${reading.back} of ${reading.rows} rows go back in time. They are sent right after the row before them.`,
    );
  return says;
}

export function rowsSay(found: TablePreview): string {
  if (found.rows === 0) return "The file has no rows.";
  const shown = found.first.length;
  const columns =
    found.columns_total > found.columns.length
      ? ` and the first ${found.columns.length} of ${found.columns_total.toLocaleString("en")} columns`
      : "";
  if (found.whole && found.rows === shown) return `The whole file: ${plural(shown, "row")}${columns}.`;
  const all = found.rows_about?.toLocaleString("en");
  const total = all ? ` of ${found.whole ? "" : "about "}${all}` : "";
  return `The first ${shown === 1 ? "row" : `${shown} rows`}${total}${columns}.`;
}
