import { count } from "../shared/format";
import type { Undelivered } from "../shared/types";

/** The rows that wait at one element: "about 3,000 rows of Table (the database does not answer)". */
function rowsOf({ title, rows, estimated, why }: Undelivered): string {
  const many = `${estimated ? "about " : ""}${count(rows)} ${rows === 1 ? "row" : "rows"} of ${title}`;
  return why ? `${many} (${why})` : many;
}

export const rowsWaiting = (undelivered: readonly Undelivered[]): string =>
  undelivered.map(rowsOf).join("; ");

/** What an undeployment does with rows that wait. `undelivered`: null if nobody knows. */
export function deliversFirst(undelivered: readonly Undelivered[] | null): string {
  if (undelivered === null)
    return "Kafka does not answer, so nobody knows how many rows wait for their delivery.";
  if (undelivered.length === 0) return "";
  return `Not delivered yet: ${rowsWaiting(undelivered)}. It waits for them, and goes on when no row was delivered for 30 s.`;
}
