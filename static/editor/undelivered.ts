import { count } from "../shared/format";
import type { Undelivered } from "../shared/types";

/** For so long the next row is waited for: LIMIT_MS of workers/control/operations/limits.py. */
export const NEXT_ROW_S = 90;

/** The rows that wait at one element: "about 3,000 rows of Table (the database does not answer)". */
function rowsOf({ title, rows, estimated, why, unread }: Undelivered): string {
  if (rows === null) return `an unknown number of rows of ${title} (Kafka does not answer)`;
  const many = `${estimated ? "about " : ""}${count(rows)} ${rows === 1 ? "row" : "rows"} of ${title}`;
  if (unread) return `${many} (not read any more)`;
  return why ? `${many} (${why})` : many;
}

const rowsWaiting = (undelivered: readonly Undelivered[]): string => undelivered.map(rowsOf).join("; ");

/** What an undeployment does with rows that wait. `undelivered`: null if nobody knows. */
export function deliversFirst(undelivered: readonly Undelivered[] | null): string {
  if (undelivered === null)
    return "Kafka does not answer, so nobody knows how many rows wait for their delivery.";
  if (undelivered.length === 0) return "No row waits for its delivery.";
  return `Not delivered yet: ${rowsWaiting(undelivered)}. Fogline waits until these are delivered, or until none was delivered for ${NEXT_ROW_S} s.`;
}

/** What nobody waits for any longer. */
export const lostNow = (undelivered: readonly Undelivered[]): string =>
  undelivered.length === 0
    ? "Fogline has not counted yet how many rows wait."
    : `Not delivered yet: ${rowsWaiting(undelivered)}.`;
