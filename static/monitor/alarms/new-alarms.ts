import type { Alarm } from "../../shared/types";

/** Which alarms a browser tells of: those that were not there before, and that nobody knows of. Pure. */
export function newAlarms(before: ReadonlySet<number>, now: readonly Alarm[]): Alarm[] {
  return now.filter(({ id, status }) => status === "raised" && !before.has(id));
}
