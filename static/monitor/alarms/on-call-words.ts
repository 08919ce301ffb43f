/** When a route tells, in words, and what is wrong with it. Pure. */
import type { OnCall, RouteSpec } from "../../shared/types";

export const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
/** as the server allows */
export const SPANS_MAX = 20;
const CLOCK = /^([01]\d|2[0-3]):[0-5]\d$/;

const short = (day: number) => DAYS[day]?.slice(0, 3) ?? "";

/** "Mon to Fri, Sun"; a row of three days or more is named by its ends. */
export function daysWords(days: readonly number[]): string {
  const sorted = [...new Set(days)].sort((one, other) => one - other);
  if (sorted.length === DAYS.length) return "every day";
  const rows: number[][] = [];
  for (const day of sorted) {
    const row = rows.at(-1);
    if (row && row.at(-1) === day - 1) row.push(day);
    else rows.push([day]);
  }
  return rows
    .flatMap((row) =>
      row.length > 2 ? [`${short(row[0] ?? 0)} to ${short(row.at(-1) ?? 0)}`] : row.map(short),
    )
    .join(", ");
}

/** "Mon to Fri 22:00 to 06:00 of the next day". */
export function spanWords({ days, begins = "00:00", ends = "00:00" }: OnCall): string {
  const hours =
    begins === ends && begins === "00:00"
      ? "all day"
      : `${begins} to ${ends}${begins < ends ? "" : " of the next day"}`;
  return `${daysWords(days)} ${hours}`;
}

export function onCallWords(spans: readonly OnCall[], zone: string): string {
  return spans.length ? `${spans.map(spanWords).join("; ")} (${zone})` : "always";
}

/** What is sent: a route that always tells has no time zone, also if a wrong one was typed before. */
export function withoutUnseenZone(spec: RouteSpec): RouteSpec {
  const { zone, ...rest } = spec;
  return spec.on_call?.length && zone !== undefined ? { ...rest, zone } : rest;
}

export function spanFault({ days, begins = "00:00", ends = "00:00" }: OnCall): string | null {
  if (days.length === 0) return "Choose a day.";
  return CLOCK.test(begins) && CLOCK.test(ends) ? null : "Write times such as 08:00 or 17:30.";
}

export function zoneFault(zone: string): string | null {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return null;
  } catch {
    return "Write a time zone such as Europe/Vienna.";
  }
}

export function onCallFault(spans: readonly OnCall[], zone: string): string | null {
  if (spans.length === 0) return null;
  return spans.map(spanFault).find((fault) => fault !== null) ?? zoneFault(zone);
}
