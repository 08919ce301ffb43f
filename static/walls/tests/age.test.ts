import { describe, expect, test } from "vitest";
import { ageOf, ageWords, decimalsOf, figureText, legible, usualGap, verdictOf } from "../age";

const NOW = Date.parse("2026-11-28T12:00:00Z");
const heard = (seconds: number) => ({
  last_row_at: new Date(NOW - 1000 * seconds).toISOString(),
  problem: null,
});

describe("the age of a figure", () => {
  test("is old only after several of its usual distances, and never before 15 s", () => {
    expect(ageOf([heard(14)], 100, NOW)).toEqual({ ms: 14_000, aged: false });
    expect(ageOf([heard(16)], 100, NOW).aged).toBe(true);
    expect(ageOf([heard(240)], 60_000, NOW).aged).toBe(false);
    expect(ageOf([heard(301)], 60_000, NOW).aged).toBe(true);
  });

  test("is that of the source that stands longest", () => {
    expect(ageOf([heard(1), heard(50)], null, NOW)).toEqual({ ms: 50_000, aged: true });
  });

  test("is unknown before the first row, which is not old", () => {
    expect(ageOf([heard(1), { last_row_at: null, problem: null }], null, NOW)).toEqual({
      ms: null,
      aged: false,
    });
    expect(ageOf([], null, NOW).ms).toBeNull();
  });

  test("is told in few words", () => {
    expect([4000, 125_000, 7_300_000, 200_000_000].map(ageWords)).toEqual(["4 s", "2 min 5 s", "2 h", "2 d"]);
  });
});

test("the usual gap is the median of what is apart", () => {
  expect(usualGap([0, 1000, 1000, 2000, 60_000])).toBe(1000);
  expect(usualGap([5])).toBeNull();
});

test("a limit is broken beyond it, not at it, and by numbers only", () => {
  expect([verdictOf(80, 10, 80), verdictOf(80.1, 10, 80), verdictOf(9, 10, 80)]).toEqual([
    null,
    "high",
    "low",
  ]);
  expect(verdictOf("99", null, 80)).toBeNull();
});

test("a figure has few digits, or those that were asked for", () => {
  expect([1234.56, 0.012345, 42, -7.25].map((value) => figureText(value, null))).toEqual([
    "1,235",
    "0.01235",
    "42",
    "-7.25",
  ]);
  expect([figureText(2, 2), figureText(null, 1), figureText(true, null), figureText("on", 3)]).toEqual([
    "2.00",
    "–",
    "yes",
    "on",
  ]);
});

test("the numbers of a column have the same decimals, unless they are whole or of very different sizes", () => {
  expect(decimalsOf([13078, 13097.9, null, 0])).toBe(1);
  expect(decimalsOf([8083.1, 8092.99, 13071])).toBe(1);
  expect(decimalsOf([0.5, 0.25, -0.75])).toBe(2);
  expect(decimalsOf([1, 2, 1234567])).toBeUndefined();
  expect(decimalsOf([12964.1, 0.000123457])).toBeUndefined();
  expect(decimalsOf(["a", null, true])).toBeUndefined();
});

test("a table's numbers keep six digits, and whole ones all", () => {
  expect(legible(12964.123456)).toBe(12964.1);
  expect(legible(0.000123456789)).toBe(0.000123457);
  expect(legible(123456789)).toBe(123456789);
  expect(legible("12.3456789")).toBe("12.3456789");
});
