import { expect, test } from "vitest";
import { alone, withBreaks } from "../curve-gaps";

const T0 = Date.parse("2024-05-01T00:00:00Z");

test("an outage is a gap, and not a line", () => {
  const times = [0, 1, 120, 121].map((second) => T0 + 1000 * second);
  expect(withBreaks(times, [1, 2, 9, 8])).toEqual({
    x: [T0, T0 + 1000, T0 + 1001, T0 + 120_000, T0 + 121_000],
    y: [1, 2, null, 9, 8],
  });
});

test("rows of several keys have times of their own, and are no gap of each other", () => {
  const times = Array.from({ length: 20 }, (_, index) => T0 + index);
  const values = times.map((_, index) => (index % 2 ? index : null));
  expect(withBreaks(times, values).y).toEqual([1, 3, 5, 7, 9, 11, 13, 15, 17, 19]);
});

test("an unsteady rate is no gap", () => {
  const times = [0, 1, 2, 6, 7, 15, 16].map((second) => T0 + 1000 * second);
  expect(withBreaks(times, [1, 1, 1, 1, 1, 1, 1]).y).not.toContain(null);
});

test("of too few rows nobody knows what is usual", () => {
  expect(withBreaks([T0, T0 + 1000, T0 + 100_000], [1, 2, 3]).y).toEqual([1, 2, 3]);
});

test("a point with nothing right before and after it stands alone", () => {
  expect(alone([1])).toEqual([0]);
  expect(alone([1, null, 2, 3, null, 4])).toEqual([0, 5]);
  expect(alone([1, 2, null])).toEqual([]);
});
