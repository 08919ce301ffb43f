/** Figures of a chart as CSV (RFC 4180). Pure. */
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
  lines: { name: string; values: (number | null | undefined)[] }[];
  marks?: Mark[];
}

/** A row for each time, oldest first: the time (ISO, UTC), each line's value (empty: unknown), what happened. */
export function csvOf({ unit, times, lines, marks = [] }: Figures): string {
  const at = times.map((time) => instant(time) ?? 0);
  const happened = marksAt(at, marks);
  const head = ["time", ...lines.map((line) => (unit ? `${line.name} (${unit})` : line.name)), "events"];
  const rows = at.map((time, index) => [
    new Date(time).toISOString(),
    ...lines.map((line) => String(line.values[index] ?? "")),
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
