/** What an element's group takes of its node's CPU, and would take with another latency target. Pure. */
import { cores, cpuTime, millis, rate } from "./format";
import type { ElementCost, LiveElement } from "./types";

/** As pipeline_runtime has them: Pace.interval_ms_min, and AHEAD_ROWS_MAX of its prefetcher. */
const INTERVAL_MS_MIN = 5;
const AHEAD_ROWS_MAX = 2000;

export const TARGET_MS_MIN = 5;
const TARGET_MS_MAX = 10_000;
const LADDER_MS = [5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];
/** Below the curve: no nearer, or their figures would touch in a narrow panel. */
export const TICKS_MS = [5, 50, 500, 10_000];
const STEPS = 60;

type Costing = Pick<LiveElement, "cost" | "latency_ms_target" | "batch_ms_p50" | "heard" | "paused">;

export interface Estimate {
  /** of the CPU, at the present target, as measured */
  now: number;
  target_ms: number;
  /** the longest target that is drawn */
  max_ms: number;
  at: (target_ms: number) => number;
}

/** Batches a second that a target asks for. `batch_ms`: what one usually takes. */
function askedFor(target_ms: number, batch_ms: number, { rows_per_s, wait_ms_max }: ElementCost): number {
  const first_ms = 1000 / rows_per_s; // from a batch's beginning to its next row
  const wait_ms = Math.min(wait_ms_max ?? Infinity, Math.max(0, target_ms - batch_ms));
  // With so many rows no target delays a batch; the next one begins when the one before it is done.
  const full_ms = AHEAD_ROWS_MAX * first_ms;
  return 1000 / Math.max(INTERVAL_MS_MIN, batch_ms, Math.min(first_ms + wait_ms, full_ms));
}

/**
 * A batch costs what it costs now, however many rows are in it, so the CPU goes with the batches a second. Where
 * they are rarer than the target asks for, since the node is busy or rows come in bursts, a longer target changes
 * nothing until it asks for as few. At most all of the node's cores. Returns null when there are no
 * figures to estimate from.
 */
export function estimate(element: Costing, node_cores: number = Infinity): Estimate | null {
  const { cost, latency_ms_target: target_ms } = element;
  if (!cost || target_ms === null || cost.batches_per_s <= 0 || cost.rows_per_s <= 0) return null;
  const { cpu_cores: now, batches_per_s } = cost;
  const asked = (ms: number) => askedFor(ms, element.batch_ms_p50 ?? 0, cost);
  const held = batches_per_s / asked(target_ms);
  const batches = (ms: number) =>
    ms >= target_ms && held < 1 ? Math.min(batches_per_s, asked(ms)) : held * asked(ms);
  return {
    now,
    target_ms,
    max_ms: Math.max(TARGET_MS_MAX, target_ms),
    at: (ms) => Math.min((now / batches_per_s) * batches(ms), Math.max(node_cores, now)),
  };
}

/** Where a target lies on the axis, 0..1: in decades. */
export const placeOf = (ms: number, { max_ms }: Estimate): number =>
  Math.log(ms / TARGET_MS_MIN) / Math.log(max_ms / TARGET_MS_MIN);

/** The curve's values at even steps of the axis, from the shortest target to the longest. */
export function curve(estimated: Estimate): number[] {
  const ratio = estimated.max_ms / TARGET_MS_MIN;
  return Array.from({ length: STEPS + 1 }, (_, index) =>
    estimated.at(TARGET_MS_MIN * Math.pow(ratio, index / STEPS)),
  );
}

/** The cost at four times the target, or at a quarter if that is too long: "At a target of 2 s: about …". */
export function sentenceOf({ now, target_ms, at }: Estimate): string {
  const other =
    LADDER_MS.find((each) => each >= 4 * target_ms) ??
    LADDER_MS.findLast((each) => each <= target_ms / 4) ??
    TARGET_MS_MIN;
  const then = cores(at(other));
  return then === cores(now)
    ? `At a target of ${targetWords(other)}: about as much as now, ${then} cores.`
    : `At a target of ${targetWords(other)}: about ${then} cores instead of ${cores(now)}.`;
}

/** "500 ms", "2 s": without the decimals of what is measured. */
export const targetWords = (ms: number): string => (ms < 1000 || ms > 60_000 ? millis(ms) : `${ms / 1000} s`);

/** What the estimate is based on, and what it leaves out. */
export function basisOf(element: Costing): string {
  const { cost } = element;
  if (!cost || cost.batches_per_s <= 0) return "";
  const each = cpuTime(cost.cpu_cores / cost.batches_per_s);
  return (
    `An estimate, from the last half minute: ${each} of CPU per batch, ${rate(cost.batches_per_s)} batches and ` +
    `${rate(cost.rows_per_s)} rows per second. It holds as long as a batch with more rows does not cost more and the node is ` +
    "less than half busy; above that, batches are further apart."
  );
}

/** Why there is no estimate. */
export function missing({ cost, heard, paused }: Costing): string {
  if (!heard) return "It is not known while the node does not answer.";
  if (!cost) return "It has not been measured yet.";
  if (paused)
    return "The element is paused and costs nothing. An estimate needs the figures of the last half minute.";
  return "No row arrived in the last half minute, and an estimate needs its figures.";
}

/** CPU time per row, such as "57 µs"; null when no row arrived or it is not measured. */
export function perRow({ cost }: Pick<LiveElement, "cost">): string | null {
  return cost && cost.rows_per_s > 0 ? cpuTime(cost.cpu_cores / cost.rows_per_s) : null;
}
