/** Since when an element has had no row, and when the next one is due. Pure. */
import { instant, momentShort, seconds, toTheSecond } from "./format";
import type { LiveElement } from "./types";

/** A source that sends less often than this is told with its times: its rates say 0 most of the time. */
const QUIET_MS = 10_000;

export interface Quiet {
  label: "Next row due" | "No row since";
  value: string;
  at: string;
}

type Rows = Pick<
  LiveElement,
  "heard" | "paused" | "ended" | "rows_in_per_s" | "rows_out_per_s" | "last_row_at" | "next_row_due_at"
>;

/** null while rows come, and when nothing is known of its rows. */
export function quietOf(element: Rows, now_ms: number): Quiet | null {
  if (!element.heard || element.paused || element.ended) return null;
  const due = instant(element.next_row_due_at);
  if (due !== null && due - now_ms > QUIET_MS)
    return { label: "Next row due", value: `in ${seconds(due - now_ms)}`, at: element.next_row_due_at ?? "" };
  const last = instant(element.last_row_at);
  if (last === null || now_ms - last <= QUIET_MS) return null;
  const value = now_ms - last < 3_600_000 ? toTheSecond(last) : momentShort(last, now_ms);
  return { label: "No row since", value, at: element.last_row_at ?? "" };
}
