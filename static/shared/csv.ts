/** Figures of a chart as CSV (RFC 4180). Pure. */
import { toldFlags, type Flags } from "./flags";
import { instant } from "./format";
import { marksAt, type Mark } from "./marks";

/** A text that a spreadsheet would take for a formula is kept a text. */
function cell(value: string): string {
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

interface Figures {
  unit: string;
  times: (number | string)[];
  lines: {
    name: string;
    unit?: string;
    values: (number | null | undefined)[];
    texts?: (string | null)[];
  }[];
  marks?: Mark[];
  flags?: Flags[];
}

const named = (name: string, unit: string): string => (unit ? `${name} (${unit})` : name);

/** A row for each time, oldest first: the time (ISO, UTC), each line's value (empty: unknown), what happened. */
export function csvOf({ unit, times, lines, marks = [], flags = [] }: Figures): string {
  const at = times.map((time) => instant(time) ?? 0);
  const happened = marksAt(at, [...marks, ...toldFlags(flags)]);
  const head = ["time", ...lines.map((line) => named(line.name, line.unit ?? unit)), "events"];
  const rows = at.map((time, index) => [
    new Date(time).toISOString(),
    ...lines.map((line) => String(line.texts?.[index] ?? line.values[index] ?? "")),
    cell(happened[index] ?? ""),
  ]);
  return [head.map(cell), ...rows].map((row) => `${row.join(",")}\r\n`).join("");
}

/** "watched-positive-throughput.csv" */
export const csvName = (...parts: string[]): string =>
  `${parts
    .map((part) => part.toLowerCase().replace(/[^a-z0-9]+/g, "-"))
    .join("-")
    .replace(/-+/g, "-")
    .replace(/^-|-$/g, "")}.csv`;
