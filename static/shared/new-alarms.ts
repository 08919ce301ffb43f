import type { Alarm } from "./types";

/** How many alarms that are over a browser remembers, so that a page that is behind tells of none again. */
const KEPT_MAX = 1000;

/** An alarm that got worse is told of once more. A new database begins with the same ids. */
const markOf = ({ id, raised_at, severity }: Alarm) => `${id} ${raised_at} ${severity}`;

/**
 * Which of the open alarms a browser tells of: those that nobody knows of, and of which none of its pages has
 * told. `known` is what its pages remember together: marks, oldest first. Pure.
 */
export function newAlarms(
  known: readonly string[],
  open: readonly Alarm[],
): { found: Alarm[]; known: string[] } {
  const before = new Set(known);
  const raised = open.filter(({ status }) => status === "raised");
  const found = raised.filter((alarm) => !before.has(markOf(alarm)));
  const now = new Set(raised.map(markOf));
  const over = known.filter((mark) => !now.has(mark)).slice(-KEPT_MAX);
  return { found, known: [...over, ...now] };
}
