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

/** From how many rows of which element it was made, as one sentence. */
export function stepWords({ records, count: all, kept, source_title: source }: TracedStep): string {
  if (!kept) return `From rows of ${source}, which runs as one with it.`;
  if (all === 0) return `No row of ${source} was found.`;
  if (all > records.length)
    return `From ${plural(all, "row")} of ${source}. The newest ${count(records.length)} are shown.`;
  return `From ${plural(all, "row")} of ${source}.`;
}
