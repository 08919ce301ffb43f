import { expect, test } from "vitest";
import type { Room } from "../room";
import { fitTable, widthsOf } from "../table-fit";

const desk: Room = { width: 640, height: 400, least_px: 12, afar: false };
const hall: Room = { width: 640, height: 400, least_px: 26, afar: true };
/** of one letter, px */
const wide = (px: number): number => 0.57 * px;

test("the widest cell of a column counts, and a long text only as far as it is shown", () => {
  const rows = [{ values: [12964.1, "x".repeat(90)] }, { values: [null, ""] }];
  const named = [{ name: "n" }, { name: "text" }];
  expect(widthsOf(named, rows, ["14:03:12"], false)).toEqual({ time: 11, columns: [10, 35] });
  expect(widthsOf(named, rows, ["14:03:12"], true).time).toBe(14);
  expect(widthsOf(named, [], [], false).columns).toEqual([4, 7]);
});

test("at a desk all is there, as large as fits, and never too small to read", () => {
  expect(fitTable(desk, { time: 11, columns: [10, 10] }, 50)).toMatchObject({
    timed: true,
    columns: 2,
    rows: 50,
  });
  const { text_px } = fitTable(desk, { time: 15, columns: [20, 20] }, 10);
  expect(55 * wide(text_px)).toBeCloseTo(640);
  expect(fitTable(desk, { time: 15, columns: [40, 40] }, 10).text_px).toBe(12);
});

test("from afar letters stay large: the oldest rows go, then the times, then the last columns", () => {
  const all = fitTable(hall, { time: 11, columns: [15, 15] }, 50);
  expect(all).toMatchObject({ timed: true, columns: 2 });
  expect(all.rows).toBe(7);
  expect((all.rows + 1) * (1.4 * all.text_px + 9)).toBeLessThanOrEqual(400);
  expect(fitTable(hall, { time: 11, columns: [20, 20] }, 3)).toMatchObject({
    timed: false,
    columns: 2,
    rows: 3,
  });
  const some = fitTable(hall, { time: 11, columns: [20, 20, 20] }, 50);
  expect(some).toMatchObject({ timed: false, columns: 2 });
  expect(some.rows).toBeLessThan(all.rows);
  expect(fitTable({ ...hall, width: 100, height: 20 }, { time: 11, columns: [20, 20] }, 9)).toEqual({
    text_px: 26,
    timed: false,
    columns: 1,
    rows: 1,
  });
});

test("from afar letters grow a little where there is room", () => {
  expect(fitTable({ ...hall, width: 4000 }, { time: 11, columns: [10] }, 1).text_px).toBeCloseTo(33.8);
});
