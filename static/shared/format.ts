/** Numbers and times as people read them. Units always; no jumping widths. */

const NONE = "–";

export function rate(perSecond: number | null | undefined): string {
  if (perSecond == null) return NONE;
  if (perSecond >= 100_000) return `${Math.round(perSecond / 1000)}k`;
  if (perSecond >= 10_000) return `${(perSecond / 1000).toFixed(1)}k`;
  if (perSecond >= 100 || perSecond === 0) return Math.round(perSecond).toLocaleString("en");
  return perSecond >= 10 ? perSecond.toFixed(0) : perSecond.toFixed(1);
}

export function count(value: number | null | undefined): string {
  if (value == null) return NONE;
  if (value >= 10_000_000) return `${(value / 1e6).toFixed(1)}M`;
  return Math.round(value).toLocaleString("en");
}

export function bytes(value: number | null | undefined): string {
  if (value == null) return NONE;
  const units = ["B", "KB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`;
}

export function percent(ratio: number | null | undefined): string {
  return ratio == null ? NONE : `${Math.round(ratio * 100)} %`;
}

export function millis(ms: number | null | undefined): string {
  if (ms == null) return NONE;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** CPU cores with as many decimals as are useful: "0.05", "1.2". */
export function cores(value: number | null | undefined): string {
  if (value == null) return NONE;
  return value === 0 || value >= 9.95
    ? value.toFixed(0)
    : value.toFixed(value < 0.01 ? 3 : value < 0.995 ? 2 : 1);
}

/** CPU time of a row or a batch: "0.4 µs", "57 µs", "5.7 ms", "57 ms". */
export function cpuTime(seconds: number): string {
  const [value, unit] = seconds < 1e-3 ? [seconds * 1e6, "µs"] : [seconds * 1e3, "ms"];
  return `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)} ${unit}`;
}

/** The latency of a line, with one decimal if it is useful: "0.4 ms", "12 ms". */
export const latency = (ms: number): string => `${ms < 10 ? Number(ms.toFixed(1)) : Math.round(ms)} ms`;

/** A time that still runs: whole seconds, so that it does not flicker. */
export function seconds(ms: number): string {
  const whole = Math.floor(ms / 1000);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

const SPANS: readonly [number, string][] = [
  [86_400, "day"],
  [3600, "hour"],
  [60, "minute"],
];

/** A length of time in the largest unit of which it is a whole number: "8 hours", "90 s". */
export function span(seconds: number): string {
  const [length, unit] = SPANS.find(([each]) => seconds >= each && seconds % each === 0) ?? [];
  return length && unit ? plural(seconds / length, unit) : `${seconds} s`;
}

/** Milliseconds since the epoch of an ISO text, seconds or milliseconds; null when there is none. */
export function instant(at: string | number | null | undefined): number | null {
  if (at == null || at === "") return null;
  if (typeof at === "number") return at < 1e11 ? at * 1000 : at;
  const parsed = Date.parse(at);
  return Number.isNaN(parsed) ? null : parsed;
}

export function ago(at: string | number | null | undefined, now: number = Date.now()): string {
  const then = instant(at);
  if (then == null) return "never";
  const seconds = Math.round((now - then) / 1000);
  if (seconds < 2) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

const DAY = { day: "numeric", month: "short", year: "numeric" } as const;
const EXACT = new Intl.DateTimeFormat("en-GB", {
  ...DAY,
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

/** Local date and time: "23 Nov 2026, 22:42:31". */
export function exact(at: string | number | null | undefined): string {
  const then = instant(at);
  return then == null ? "" : EXACT.format(then);
}

const TIME = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" } as const;
const CLOCK = new Intl.DateTimeFormat("en-GB", { ...TIME, fractionalSecondDigits: 3 });

/** Local time to the millisecond: "14:03:12.085". */
export const timeOfDay = (time_ms: number): string => CLOCK.format(time_ms);

const DATE = new Intl.DateTimeFormat("en-GB", DAY);

/** Local time to the millisecond, with its date unless it is of today. */
export function moment(time_ms: number, now_ms: number = Date.now()): string {
  const [date, today] = [DATE.format(time_ms), DATE.format(now_ms)];
  return date === today ? timeOfDay(time_ms) : `${date}, ${timeOfDay(time_ms)}`;
}

const TO_THE_MINUTE = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});

/** Local time to the minute, with its date unless it is of today: "12:03". */
export function momentShort(time_ms: number, now_ms: number = Date.now()): string {
  const [date, today] = [DATE.format(time_ms), DATE.format(now_ms)];
  return `${date === today ? "" : `${date}, `}${TO_THE_MINUTE.format(time_ms)}`;
}

export const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

// A file's name, a path or a column, such as messy.csv, machine/power or temp_1: it stays as somebody wrote it.
const BEGINS_WITH_A_NAME = /^\S*(\w[._/]\w|[a-z]\d)/;

/** A clause as a sentence: "has to be a number" -> "Has to be a number." */
export function sentence(clause: string): string {
  const text = BEGINS_WITH_A_NAME.test(clause) ? clause : capitalised(clause);
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
const TO_THE_SECOND = new Intl.DateTimeFormat("en-GB", TIME);

/** Local time: "14:03:12". */
export const toTheSecond = (time_ms: number): string => TO_THE_SECOND.format(time_ms);

const AND = new Intl.ListFormat("en-GB", { type: "conjunction" });

/** "edge-a, edge-b and edge-c". */
export const listed = (names: readonly string[]): string => AND.format(names);

const ORDINAL = new Intl.PluralRules("en", { type: "ordinal" });
const ENDINGS: Partial<Record<Intl.LDMLPluralRule, string>> = { one: "st", two: "nd", few: "rd" };

/** "2nd" */
export const ordinal = (n: number): string => `${n}${ENDINGS[ORDINAL.select(n)] ?? "th"}`;

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}
