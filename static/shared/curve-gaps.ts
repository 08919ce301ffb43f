/** Where a curve has a gap: a line must not claim what was not measured. Pure. */

/** Rows that are so many times further apart than usual have a gap between them. */
const GAP_RATIO = 10;

export interface Piece {
  x: number[];
  /** null: the curve is broken here */
  y: (number | null)[];
}

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/** The points of a curve that has values at some of these times (ms, rising), broken where rows are missing. */
export function withBreaks(times: readonly number[], values: readonly (number | null | undefined)[]): Piece {
  const known = times.flatMap((t, index) => {
    const value = values[index];
    return value == null ? [] : [[t, value] as const];
  });
  const apart = known.slice(1).map(([t], index) => t - (known[index]?.[0] ?? t));
  const limit = apart.length > 2 ? GAP_RATIO * median(apart.filter((ms) => ms > 0)) : 0;
  const [x, y]: [number[], (number | null)[]] = [[], []];
  known.forEach(([t, value], index) => {
    const before = known[index - 1]?.[0];
    if (before !== undefined && limit > 0 && t - before > limit) {
      x.push(before + 1);
      y.push(null);
    }
    x.push(t);
    y.push(value);
  });
  return { x, y };
}

/** The places of points that no line meets: each has no value right before it and none right after it. */
export const alone = (y: readonly (number | null)[]): number[] =>
  y.flatMap((value, index) =>
    value !== null && y[index - 1] == null && y[index + 1] == null ? [index] : [],
  );
