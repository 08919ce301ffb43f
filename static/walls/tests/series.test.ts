import { describe, expect, test } from "vitest";
import type { ChartTile, PeekRecord, Series } from "../../shared/types";
import { DAY_MS, everyOf, seriesName, wallChart } from "../series";
import { headPx, nameLines } from "../chart-tile";

const T0 = Date.parse("2026-11-28T12:00:00Z");
const rows = (...values: Record<string, unknown>[]) => ({
  records: values.map((value, n): PeekRecord => ({
    partition: 0,
    offset: n,
    at: new Date(T0 + 1000 * n).toISOString(),
    key: null,
    value,
  })),
  rows: values.length,
  left_out: 0,
});
const series = (more: Partial<Series> = {}): Series => ({
  pipeline: "p",
  element: "e",
  column: "kw",
  axis: "left",
  ...more,
});
const tile = (...all: Series[]): ChartTile => ({
  id: "chart-1",
  kind: "chart",
  x: 0,
  y: 0,
  w: 12,
  h: 8,
  series: all,
  range_s: 3600,
});
const NAMES = new Map([["p/e", "Power"]]);

describe("a chart on a wall", () => {
  test("draws each series on its own axis, over the times of all", () => {
    const chart = wallChart(
      tile(series(), series({ element: "f", column: "temp", axis: "right" })),
      [rows({ kw: 1 }, { kw: 2 }), rows({ temp: 50 })],
      [],
      NAMES,
    );
    expect(chart.lines.map(({ name, axis, values, series: at }) => [name, axis, values, at])).toEqual([
      ["kw", "left", [1, 2], 1],
      ["temp", "right", [50, null], 2],
    ]);
    expect(chart.times).toEqual([T0, T0 + 1000]);
  });

  test("lays the day before over today: dashed, in the same colour, a day later", () => {
    const yesterday = rows({ kw: 9 });
    yesterday.records = yesterday.records.map((record) => ({
      ...record,
      at: new Date(T0 - DAY_MS + 1000).toISOString(),
    }));
    const chart = wallChart(
      tile(series({ compare_yesterday: true })),
      [rows({ kw: 1 }, { kw: 2 })],
      [yesterday],
      NAMES,
    );
    expect(chart.lines).toMatchObject([
      { name: "kw", dash: false, series: 1, values: [1, 2] },
      { name: "kw, the day before", dash: true, series: 1, values: [null, 9] },
    ]);
  });

  test("draws a curve for each value of a column", () => {
    const by = rows({ kw: 1, machine: "m2" }, { kw: 2, machine: "m1" }, { kw: 3, machine: "m2" });
    const { lines } = wallChart(tile(series({ by: "machine" })), [by], [], NAMES);
    expect(lines.map(({ name, values }) => [name, values])).toEqual([
      ["m1", [null, 2, null]],
      ["m2", [1, null, 3]],
    ]);
  });

  test("says which curves are too many", () => {
    const many = rows(...Array.from({ length: 20 }, (_, n) => ({ kw: n, machine: n })));
    const chart = wallChart(tile(series({ by: "machine" })), [many], [], NAMES);
    expect(chart.lines).toHaveLength(14);
    expect(chart.omitted).toHaveLength(6);
  });

  test("has limits and notes", () => {
    const noted = {
      ...tile(series()),
      high: 80,
      annotations: [{ at: new Date(T0).toISOString(), text: "oven on" }],
    };
    expect(wallChart(noted, [rows({ kw: 1 })], [], NAMES)).toMatchObject({
      band: { high: 80 },
      marks: [{ t: T0, kind: "note", text: "oven on" }],
    });
    // an alarm's limit, as it runs now
    expect(wallChart(tile(series()), [rows({ kw: 1 })], [], NAMES, { low: 3, high: null }).band).toEqual({
      low: 3,
      high: undefined,
    });
  });

  test("leaves out what is no number", () => {
    const { times } = wallChart(
      tile(series()),
      [rows({ kw: null }, { kw: "x" }, { kw: true }, { kw: 4 })],
      [],
      NAMES,
    );
    expect(times).toEqual([T0 + 3000]);
  });
});

test("columns of the same name are told apart by their elements", () => {
  const [a, b] = [series(), series({ element: "f" })];
  expect(seriesName(a, [a, b], NAMES)).toBe("Power kw");
  expect(seriesName(a, [a], NAMES)).toBe("kw");
  expect(seriesName(series({ key: "m1" }), [], NAMES)).toBe("kw m1");
});

test("a long range is asked for less often", () => {
  expect([300, 3600, 2_592_000].map(everyOf)).toEqual([2000, 9000, 60_000]);
});

test("names of curves take as many lines as they need, so that none is cut", () => {
  const names = ["Drehbank-Süd", "Fräse 1", "Säge"];
  expect(nameLines(names, 590, 14)).toBe(1);
  expect(nameLines(names, 340, 12)).toBe(2);
  expect(nameLines([], 340, 12)).toBe(1);
  expect(headPx(2, 12)).toBeGreaterThan(headPx(1, 12));
});
