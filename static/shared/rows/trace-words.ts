/** What the trace of a row asks and says. Pure. */
import { count, instant } from "../format";
import type { PeekRecord, TracedStep } from "../types";

/** A row by the place where it lies. */
export interface RowPlace {
  /** `element` or `element.port` */
  stream: string;
  partition: number;
  offset: number;
}

export const placeOf = (stream: string, { partition, offset }: PeekRecord): RowPlace => ({
  stream,
  partition,
  offset,
});

/**
 * The row of a chart at a time, or the nearest to it; of several at one time the one with a mark. Columns that are
 * true are `marks`.
 */
export function rowAt(
  records: readonly PeekRecord[],
  time: number,
  marks: readonly string[],
): PeekRecord | undefined {
  const far = (record: PeekRecord) => Math.abs((instant(record.at) ?? Infinity) - time);
  const marked = ({ value }: PeekRecord) =>
    marks.some((name) => (value as Record<string, unknown> | null)?.[name] === true);
  return records.reduce<PeekRecord | undefined>((best, record) => {
    if (!best || far(record) < far(best)) return record;
    return far(record) === far(best) && marked(record) && !marked(best) ? record : best;
  }, undefined);
}

export function tracePath(pipeline: string, { stream, partition, offset }: RowPlace): string {
  const asked = new URLSearchParams({ partition: String(partition), offset: String(offset) });
  return `/pipelines/${encodeURIComponent(pipeline)}/streams/${encodeURIComponent(stream)}/trace?${asked}`;
}

/** How many rows of an element these are, and which element made the rows above from them. */
export function stepWords({ records, count: all, kept, title }: TracedStep): string {
  if (!kept) return `It runs as one with ${title}, so its rows are kept nowhere.`;
  if (all === 0) return "None of its rows belongs here.";
  const shown = all > records.length ? ` The newest ${count(records.length)} are shown.` : "";
  return `${count(all)} ${all === 1 ? "row" : "rows"}, from which ${title} made the rows above.${shown}`;
}
