/** Points of charts and sums of figures, where some of them may be unknown. Pure. */
import { instant } from "./format";
import { nameOf } from "./status";
import type { ClusterNode, ElementPoint, LiveElement, NodePoint } from "./types";

/** Reports come every second, and a point of the history every 2 s: after so long none was taken. */
const GAP_MS = 10_000;

/** An hour of reports: the longest range that a chart offers. */
const FRESH_POINTS_MAX = 3600;

/** With a point without figures wherever none was taken: a line must not claim what was not measured. */
export function withGaps<P extends { t: number }>(points: P[]): P[] {
  return points.flatMap((point, index) => {
    const before = points[index - 1]?.t;
    const gap = before !== undefined && point.t - before > GAP_MS;
    // all figures of a point are optional
    return gap ? [{ t: before + 1 } as P, point] : [point];
  });
}

/**
 * With the newest point after those before it. One of the same time takes the place of the last: a report is
 * told in two messages, its node's and its elements'. One from before the last is old news.
 */
export function withNewest<P extends { t: number }>(points: P[], newest: P): P[] {
  const last = points.at(-1);
  if (last && newest.t < last.t) return points;
  const before = last?.t === newest.t ? points.slice(0, -1) : points;
  return [...before.slice(1 - FRESH_POINTS_MAX), newest];
}

/** Whether the element's figures are of now: of a node that is not heard they are unknown. */
const isHeard = (element: LiveElement): boolean => element.heard;

/**
 * An element's figures as the newest point of its charts, at the time of the report that they are from: told
 * again without a new report, they are no new measurement. null: its node never reported.
 */
export function pointOf(element: LiveElement, node: ClusterNode | undefined): ElementPoint | null {
  const t = instant(node?.last_seen_at);
  if (t === null) return null;
  if (!isHeard(element)) return { t: t + 1 };
  const { rows_in_per_s, rows_out_per_s, lag_rows, batch_ms_p50, batch_ms_p95, state_bytes } = element;
  const { latency_ms_p50, latency_ms_p95, latency_ms_p99 } = element;
  const latency = { latency_ms_p50, latency_ms_p95, latency_ms_p99 };
  return { t, rows_in_per_s, rows_out_per_s, lag_rows, batch_ms_p50, batch_ms_p95, ...latency, state_bytes };
}

/** A node's load as the newest point of its charts; null if the node never reported. */
export function loadPointOf(node: ClusterNode): NodePoint | null {
  const t = instant(node.last_seen_at);
  return t === null ? null : node.up ? { ...node.load, t } : { t: t + 1 };
}

/** From one point to the next of a chart over all nodes. */
const STEP_MS = 4000;

/** One axis of times for points that each node took at its own: the newest of each step. One step may
 * go without a point, as reports are late at times; after that there is none to show. */
export function aligned(
  histories: NodePoint[][],
  figure: "cpu_ratio" | "memory_ratio",
  now_ms: number,
  span_ms: number,
): { times: number[]; values: (number | null)[][] } {
  const end = Math.floor(now_ms / STEP_MS);
  const length = Math.floor(span_ms / STEP_MS);
  const steps = Array.from({ length }, (_, index) => end - length + 1 + index);
  const values = histories.map((points) => {
    const byStep = new Map(points.map((point) => [Math.floor(point.t / STEP_MS), point[figure] ?? null]));
    return steps.map((step) => byStep.get(step) ?? byStep.get(step - 1) ?? null);
  });
  const first = steps.findIndex((_, index) => values.some((each) => each[index] != null));
  const from = Math.max(0, first);
  return {
    times: steps.slice(from).map((step) => step * STEP_MS),
    values: values.map((each) => each.slice(from)),
  };
}

const SPARK = { width: 100, height: 28, room: 2 };

/** How high a value lies in that box, 0..1, which is `share` of the greatest. */
export const sparkHeight = (share: number): number =>
  (1 + share * (SPARK.height - 1 - SPARK.room)) / SPARK.height;

/** The pieces of a small curve, each a line and the area below it, in a box of 100 by 28. */
export function sparkPaths(
  values: readonly (number | null | undefined)[],
  max?: number,
): { line: string; area: string }[] {
  const top = max ?? Math.max(1e-9, ...values.map((value) => value ?? 0));
  const step = values.length > 1 ? SPARK.width / (values.length - 1) : SPARK.width;
  const pieces: [number, number][][] = [];
  let piece: [number, number][] = [];
  values.forEach((value, index) => {
    if (value == null) {
      piece = [];
      return;
    }
    if (piece.length === 0) pieces.push(piece);
    const share = Math.min(value, top) / top;
    piece.push([index * step, SPARK.height * (1 - sparkHeight(share))]);
  });
  return pieces
    .filter((points) => points.length > 1)
    .map((points) => {
      const line = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" L");
      const [first, last] = [points[0]?.[0] ?? 0, points.at(-1)?.[0] ?? 0];
      const bottom = SPARK.height;
      return {
        line: `M${line}`,
        area: `M${first.toFixed(1)},${bottom} L${line} L${last.toFixed(1)},${bottom} Z`,
      };
    });
}

const UNKNOWN_TOLD = 3;

const sum = (known: readonly number[]): number | null =>
  known.length ? known.reduce((total, value) => total + value, 0) : null;

/** The rows that the elements write per second: of those whose rate is known, or null if it is known for none. */
export const written = (elements: readonly LiveElement[]): number | null =>
  sum(elements.flatMap((element) => element.rows_out_per_s ?? []));

/** The rows that pass an element per second: those that it reads, or writes where it reads none. null: not known. */
export const passes = ({ rows_in_per_s, rows_out_per_s }: LiveElement): number | null =>
  rows_in_per_s || rows_out_per_s || (rows_in_per_s ?? rows_out_per_s);

/** Whether all rows of an element come from elements that run as one with it: then none wait before it. */
export const runsInside = (
  element: Pick<LiveElement, "group"> | undefined,
  sources: readonly (Pick<LiveElement, "group"> | undefined)[],
): boolean =>
  element !== undefined &&
  sources.length > 0 &&
  sources.every((source) => source !== undefined && source.group === element.group);

/** Rows that wait, or why nobody knows how many. */
export interface Waiting {
  rows: number | null;
  why?: string;
}

/** The rows that wait for the elements of these pipelines; none are said if they are not known of one element.
 * Elements that run as one have one queue, which counts once. */
export function waiting(...pipelines: (readonly LiveElement[])[]): Waiting {
  const queues = pipelines.flatMap((elements) =>
    elements.filter((element, index) => elements.findIndex(({ group }) => group === element.group) === index),
  );
  const unknown = queues.filter((element) => element.lag_unknown !== null);
  if (unknown.length > 0) {
    const why = unknown.slice(0, UNKNOWN_TOLD).map((element) => `${nameOf(element)}: ${element.lag_unknown}`);
    const more = unknown.length - why.length;
    return { rows: null, why: [...why, ...(more > 0 ? [`And ${more} more.`] : [])].join(" ") };
  }
  return { rows: sum(queues.flatMap((element) => element.lag_rows ?? [])) };
}

/** Rows a second that enter the pipeline now; null: not known. Of a source that runs as one with its readers only
 * what it reads is known. */
export function enters(elements: readonly LiveElement[], sources: readonly string[]): number | null {
  const known = elements.flatMap((element) =>
    sources.includes(element.id) ? (element.rows_out_per_s ?? element.rows_in_per_s ?? []) : [],
  );
  return known.length ? known.reduce((sum, rate) => sum + rate, 0) : null;
}
