/** What the trace of a row asks and says. Pure. */
import { count, plural } from "../../shared/format";
import type { PeekRecord, TracedStep } from "../../shared/types";

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

export function tracePath(pipeline: string, { stream, partition, offset }: RowPlace): string {
  const asked = new URLSearchParams({ partition: String(partition), offset: String(offset) });
  return `/pipelines/${encodeURIComponent(pipeline)}/streams/${encodeURIComponent(stream)}/trace?${asked}`;
}

/** How many rows of an element these are, and which element made the rows above from them. */
export function stepWords({ records, count: all, kept, title }: TracedStep): string {
  if (!kept) return `It runs as one with ${title}, so its rows are kept nowhere.`;
  if (all === 0) return "None of its rows was found.";
  const shown = all > records.length ? ` The newest ${count(records.length)} are shown.` : "";
  return `${plural(all, "row")}, from which ${title} made what is above.${shown}`;
}
