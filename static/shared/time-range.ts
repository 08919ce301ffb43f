/** The range of time that all charts of a page show. Kept in the address, so that a link shows the same. */
import { create } from "zustand";
import { remember } from "./address";

/** ms since the epoch */
export interface Span {
  from: number;
  to: number;
}

interface TimeRange {
  /** how far back the charts go while they follow time */
  minutes: number;
  /** the range that they were dragged to and hold; null while they follow time */
  held: Span | null;
}

export const RANGES: readonly [number, string][] = [
  [5, "5 min"],
  [15, "15 min"],
  [60, "1 h"],
];
const MINUTES = 5;

const isRange = (minutes: number): boolean => RANGES.some(([each]) => each === minutes);

/** What an address says: `range` in minutes, `from` and `to` as ISO times. */
export function rangeOf(params: URLSearchParams): TimeRange {
  const minutes = Number(params.get("range"));
  const from = Date.parse(params.get("from") ?? "");
  const to = Date.parse(params.get("to") ?? "");
  return { minutes: isRange(minutes) ? minutes : MINUTES, held: from < to ? { from, to } : null };
}

const params = (): URLSearchParams =>
  new URLSearchParams(typeof window === "undefined" ? "" : window.location.search);

export const useTimeRange = create<TimeRange>(() => rangeOf(params()));

function keep(): void {
  const { minutes, held } = useTimeRange.getState();
  remember({
    range: minutes === MINUTES ? null : String(minutes),
    from: held && new Date(held.from).toISOString(),
    to: held && new Date(held.to).toISOString(),
  });
}

export function hold(held: Span): void {
  useTimeRange.setState({ held });
  keep();
}

/** Back to now. */
export function follow(minutes = useTimeRange.getState().minutes): void {
  useTimeRange.setState({ minutes, held: null });
  keep();
}

/** What is shown at the time `now_ms`. */
export const spanOf = ({ minutes, held }: TimeRange, now_ms: number): Span =>
  held ?? { from: now_ms - minutes * 60_000, to: now_ms };

/**
 * The range half its width earlier (-1) or later (1); null when it reaches the present, which is followed.
 */
export function shifted(range: TimeRange, steps: -1 | 1, now_ms: number): Span | null {
  const { from, to } = spanOf(range, now_ms);
  const by = ((to - from) / 2) * steps;
  return to + by >= now_ms ? null : { from: from + by, to: to + by };
}

export function shift(steps: -1 | 1): void {
  const span = shifted(useTimeRange.getState(), steps, Date.now());
  if (span) hold(span);
  else follow();
}

const WIDTH_MS_MIN = 2_000;
const WIDTH_MS_MAX = 7 * 24 * 3_600_000;

/**
 * The range half (1/2) or twice (2) as wide, around its middle, or up to now while time is followed, but
 * never in the future; null when that is not possible.
 */
export function scaled(range: TimeRange, factor: 0.5 | 2, now_ms: number): Span | null {
  const { from, to } = spanOf(range, now_ms);
  const width = (to - from) * factor;
  if (width < WIDTH_MS_MIN || width > WIDTH_MS_MAX) return null;
  const end = range.held ? Math.min((from + to + width) / 2, now_ms) : to;
  return { from: end - width, to: end };
}

export function scale(factor: 0.5 | 2): void {
  const span = scaled(useTimeRange.getState(), factor, Date.now());
  if (span) hold(span);
}

/** The points of a span, with one at each side, so that lines go on to its edges. */
export function within<P extends { t: number }>(points: P[], { from, to }: Span): P[] {
  const first = points.findIndex((point) => point.t >= from);
  const after = points.findIndex((point) => point.t > to);
  return points.slice(
    Math.max(0, (first < 0 ? points.length : first) - 1),
    after < 0 ? points.length : after + 1,
  );
}
