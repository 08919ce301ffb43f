/** How a file is read: what was found in it, with what a person changed. Pure. */
import type { ColumnReading, Detection, Question, Reading, Source, TimeReading } from "./types";

/** What of a column a person may change without a new look at the file. */
export type ColumnChange = Partial<
  Pick<ColumnReading, "name" | "type" | "unit" | "decimal" | "thousands" | "missing" | "beside" | "format">
> & { out?: boolean };

/** All that a person changed. It outlives a new look at the file, which is taken around `fixed`. */
export interface Changes {
  /** places of the reading that decide the others, such as `delimiter`, with their values */
  fixed: Readonly<Record<string, unknown>>;
  /** question -> number of the choice */
  answers: Readonly<Record<string, number>>;
  /** by the column's place in the file */
  columns: Readonly<Record<string, ColumnChange>>;
  time: Partial<Omit<TimeReading, "columns">>;
}

export const NO_CHANGES: Changes = { fixed: {}, answers: {}, columns: {}, time: {} };

/** Sets the value at a place such as `columns.2.thousands`. A place that is not there changes nothing. */
export function withValue<T>(whole: T, place: string, value: unknown): T {
  const [first = "", ...rest] = place.split(".");
  if (whole === null || typeof whole !== "object" || !(first in whole)) return whole;
  const part = (whole as Record<string, unknown>)[first];
  const next = rest.length ? withValue(part, rest.join("."), value) : value;
  if (Array.isArray(whole)) return whole.map((each, at) => (String(at) === first ? next : each)) as T;
  return { ...whole, [first]: next };
}

/** The reading that the detection, the answers and the changes make together. */
export function readingOf(detection: Detection, changes: Changes): Reading {
  let reading = detection.reading;
  for (const { id, choices } of detection.questions) {
    const choice = choices[changes.answers[id] ?? -1];
    for (const [place, value] of Object.entries(choice?.changes ?? {}))
      reading = withValue(reading, place, value);
  }
  const columns = reading.columns
    .map((column) => ({ column, change: changes.columns[String(column.source)] ?? {} }))
    .filter(({ change }) => !change.out)
    .map(({ column, change: { out: _, ...change } }) => ({ ...column, ...change }));
  return { ...reading, columns, time: reading.time && { ...reading.time, ...changes.time } };
}

export const openQuestions = (detection: Detection, changes: Changes): Question[] =>
  detection.questions.filter(({ id }) => changes.answers[id] === undefined);

/** The change of a column, on top of the earlier ones; what is as it was found is no change. */
export function changeColumn(changes: Changes, source: Source, change: ColumnChange): Changes {
  const before = changes.columns[String(source)] ?? {};
  return { ...changes, columns: { ...changes.columns, [String(source)]: { ...before, ...change } } };
}

/** What makes a column's values; its name and unit are its own. */
const SHARED = ["type", "decimal", "thousands", "missing", "beside", "format", "out"] as const;

/** The other columns that were taken for the same, and are read otherwise now than this one. */
export function columnsLike(detection: Detection, changes: Changes, source: Source): Source[] {
  const { columns } = detection.reading;
  const own = changes.columns[String(source)] ?? {};
  const type = columns.find((each) => each.source === source)?.type;
  if (!SHARED.some((part) => part in own)) return [];
  const differs = (other: ColumnChange) =>
    SHARED.some((part) => JSON.stringify(own[part]) !== JSON.stringify(other[part]));
  return columns
    .filter((each) => each.source !== source && each.type === type)
    .filter((each) => differs(changes.columns[String(each.source)] ?? {}))
    .map((each) => each.source);
}

/** Reads all columns that were taken for the same as this one is read now. */
export function applyToLike(detection: Detection, changes: Changes, source: Source): Changes {
  const own = changes.columns[String(source)] ?? {};
  const shared = Object.fromEntries(SHARED.filter((part) => part in own).map((part) => [part, own[part]]));
  return columnsLike(detection, changes, source).reduce(
    (all, other) => changeColumn(all, other, shared),
    changes,
  );
}

/** Why the reading cannot be imported yet; null when it can. */
export function refusalOf(detection: Detection, changes: Changes): string | null {
  const open = openQuestions(detection, changes).length;
  if (open > 0) return open === 1 ? "One question is open." : `${open} questions are open.`;
  const { columns } = readingOf(detection, changes);
  if (columns.length === 0) return "No column is left. Take at least one.";
  const names = columns.map(({ name }) => name.trim());
  if (names.includes("")) return "A column has no name.";
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  return twice === undefined ? null : `Two columns are called ${twice}.`;
}
