/** Changes that decide the rest of a reading, which is then found again around them. Pure. */
import type { Changes } from "./reading";

export type LineUse = "header_line" | "units_line" | "first_line" | "last_line";

const ORDER: readonly LineUse[] = ["header_line", "units_line", "first_line", "last_line"];

const without = (fixed: Changes["fixed"], drop: (place: string, value: unknown) => boolean) =>
  Object.fromEntries(Object.entries(fixed).filter(([place, value]) => !drop(place, value)));

/** Fixes what a line is; null: no line is that. Lines that can no longer be what they were are free again. */
export function fixLine(changes: Changes, use: LineUse, line: number | null): Changes {
  const own = ORDER.indexOf(use);
  const kept = without(changes.fixed, (place, value) => {
    const other = ORDER.indexOf(place as LineUse);
    if (other < 0 || other === own || line === null || typeof value !== "number") return false;
    return other < own ? value >= line : value <= line;
  });
  // a table begins somewhere: its first row is found again, and so is where it ends
  const fixed =
    ["first_line", "last_line"].includes(use) && line === null
      ? without(kept, (place) => place === use)
      : { ...kept, [use]: line };
  return { ...changes, fixed };
}

/** Parts of the reading after which columns are others: what was said of them no longer holds. */
const NEW_COLUMNS = new Set([
  ...["encoding", "delimiter", "quote", "escape", "cuts", "comment"],
  ...["sheet", "member", "records"],
]);

const TABLES = ["member", "sheet", "records"];

/** What of a reading says which table of a text it is, if other columns come with it. */
const WITHIN = ["delimiter", "commas", "header_line", "units_line", "first_line", "last_line"];

/** The table that an answer names, of several in the file: its reading is then found like that of any file. */
export function fixTable(changes: Changes, choice: Readonly<Record<string, unknown>>): Changes {
  const tables = TABLES.filter((each) => each in choice);
  const within = "columns" in choice ? WITHIN.filter((each) => each in choice) : [];
  return (tables.length ? tables : within).reduce((all, place) => fix(all, place, choice[place]), changes);
}

export function fix(changes: Changes, place: string, value: unknown): Changes {
  const next = { ...changes, fixed: { ...changes.fixed, [place]: value } };
  return NEW_COLUMNS.has(place) ? { ...next, columns: {}, time: {} } : next;
}

/** The columns of the time, whose pattern is found again; none: rows have no time. */
export function fixTime(changes: Changes, columns: readonly (number | string)[]): Changes {
  const kept = without(changes.fixed, (place) => place === "time" || place === "time.columns");
  const fixed = columns.length ? { ...kept, "time.columns": columns } : { ...kept, time: null };
  const { format: _, ...time } = changes.time;
  return { ...changes, fixed, time };
}
