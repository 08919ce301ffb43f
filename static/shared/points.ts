/** Points of charts and sums of figures, where some of them may be unknown. Pure. */
import { instant } from "./format";
import type { ElementPoint, LiveElement } from "./types";

/** Reports come every second, and a point of the history every 2 s: after so long none was taken. */
const GAP_MS = 10_000;

/** With a point without figures wherever none was taken: a line must not claim what was not measured. */
export function withGaps<P extends { t: number | string }>(points: P[]): P[] {
  return points.flatMap((point, index) => {
    const before = instant(points[index - 1]?.t);
    const gap = before !== null && (instant(point.t) ?? 0) - before > GAP_MS;
    // all figures of a point are optional
    return gap ? [{ t: before + 1 } as P, point] : [point];
  });
}

/** Whether the element's figures are of now: of a node that is not heard they are unknown. */
const isHeard = (element: LiveElement): boolean => element.lag_rows !== null;

/** An element's figures as the newest point of its charts. */
export const pointOf = (element: LiveElement, t: number): ElementPoint =>
  isHeard(element) ? { ...element, t } : { t };

/** Of the elements whose figure is known; null: of none. */
export function total(elements: LiveElement[], figure: "rows_out_per_s" | "lag_rows"): number | null {
  const known = elements.flatMap((element) => element[figure] ?? []);
  return known.length ? known.reduce((sum, value) => sum + value, 0) : null;
}
