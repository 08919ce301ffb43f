/** What the panel of a stream asks and says. Pure. */
import { bytes, count, millis, plural, rate } from "../../shared/format";
import type { LiveElement, Queue } from "../../shared/types";

export interface Search {
  key: string;
  text: string;
  /** local date and time, as a field gives it; empty for none */
  from: string;
}

export const NO_SEARCH: Search = { key: "", text: "", from: "" };
export const LIMIT = 50;

export const searches = ({ key, text, from }: Search): boolean => !!(key || text || from);

export function queuePath(pipeline: string, stream: string, reader: string, search: Search): string {
  const asked = new URLSearchParams({ reader, limit: String(LIMIT) });
  if (search.key) asked.set("key", search.key);
  if (search.text) asked.set("text", search.text);
  const from_ms = Date.parse(search.from);
  if (!Number.isNaN(from_ms)) asked.set("from_ms", String(from_ms));
  return `/pipelines/${encodeURIComponent(pipeline)}/streams/${encodeURIComponent(stream)}/queue?${asked}`;
}

/** What of the stream is shown, as one sentence. */
export function queueWords({ records, looked, more, known }: Queue, search: Search): string {
  const shown = plural(records.length, "row");
  if (search.from) return `${shown} from that time on${more ? "; there are more" : ""}.`;
  if (search.key || search.text)
    return `${shown} of the newest ${looked.toLocaleString("en")}${more ? "; others were not looked through" : ""}.`;
  if (!known) return `The newest ${shown}. How far its reader has come is not known.`;
  const waits = records.filter((record) => record.waits).length;
  if (waits === 0) return "Its reader has finished all rows. These are the last of them.";
  // a batch may be working on them: the figure above counts those that no batch has taken yet
  if (waits === records.length) return "Its reader has finished none of these rows yet.";
  return `Its reader has not finished ${plural(waits, "row")} yet. It finished the others last.`;
}

/** "98 rows/s", "4.1 KB/s", "3 wait", "120 ms": what an edge says on hover. */
export function edgeFigures(
  producer: LiveElement | null | undefined,
  consumer: LiveElement | null | undefined,
): string[] {
  const lag = consumer?.lag_rows;
  return [
    `${rate(producer?.rows_out_per_s)} rows/s`,
    ...(producer?.bytes_out_per_s == null ? [] : [`${bytes(producer.bytes_out_per_s)}/s`]),
    ...(lag == null ? [] : [lag === 0 ? "nothing waits" : `${count(lag)} wait`]),
    ...(consumer?.latency_ms_p95 == null ? [] : [millis(consumer.latency_ms_p95)]),
  ];
}
