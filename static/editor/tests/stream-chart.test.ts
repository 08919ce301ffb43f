import { describe, expect, test } from "vitest";
import type { PeekRecord } from "../../shared/types";
import { pickedIn } from "../../shared/ui/chart-plot";
import { rowsOfKey, streamChart } from "../live/stream-chart";

const T0 = Date.parse("2026-11-20T12:00:00Z");
const record = (second: number, value: unknown, key: string | null = null): PeekRecord => ({
  partition: 0,
  offset: second,
  at: new Date(T0 + 1000 * second).toISOString(),
  key,
  value,
});
const FIELDS = [
  { name: "power", type: "number", unit: "kW" },
  { name: "speed", type: "number", unit: null },
] as const;

describe("what a chart draws of a stream", () => {
  const rows = [0, 1, 2].map((second) =>
    record(second, { power: second, speed: -second, high: second === 1, hall: second < 2 ? "a" : "b" }),
  );

  test("of one column its name and unit are the title's", () => {
    const chart = streamChart(rows, { columns: ["power"] }, [...FIELDS]);
    expect([chart.title, chart.unit]).toEqual(["power", "kW"]);
    expect(chart.lines).toMatchObject([{ name: "power", unit: undefined, values: [0, 1, 2] }]);
  });

  test("of several each has its own", () => {
    const chart = streamChart(rows, { columns: ["power", "speed"] }, [...FIELDS]);
    expect([chart.title, chart.unit]).toEqual(["", ""]);
    expect(chart.lines.map(({ name, unit }) => [name, unit])).toEqual([
      ["power", "kW"],
      ["speed", undefined],
    ]);
  });

  test("a curve for each value of a column", () => {
    const chart = streamChart(rows, { columns: ["power"], by: "hall" });
    expect(chart.lines.map(({ name, values }) => [name, values])).toEqual([
      ["a", [0, 1, null]],
      ["b", [null, null, 2]],
    ]);
  });

  test("ten curves are drawn, and of too many it is said which are not", () => {
    const of = (n: number) =>
      Array.from({ length: n }, (_, i) => record(i, { power: i, hall: `h${10 + i}` }));
    const chart = streamChart(of(10), { columns: ["power"], by: "hall" });
    expect([chart.lines.length, chart.omitted]).toEqual([10, []]);
    expect(new Set(chart.lines.map(({ series, dash }) => `${series} ${dash}`)).size).toBe(10);
    const more = streamChart(of(16), { columns: ["power"], by: "hall" });
    expect([more.lines.length, more.omitted]).toEqual([14, ["h24", "h25"]]);
  });

  test("a whole number that no browser holds keeps its digits in the table", () => {
    const chart = streamChart([record(0, { id: "123456789012345678" })], {});
    expect(chart.lines).toMatchObject([{ name: "id", texts: ["123456789012345678"] }]);
  });

  test("its marks are of the rows that are shown", () => {
    const marks = (params: object) => streamChart(rows, { columns: ["power"], ...params }).flags;
    expect(marks({})).toEqual([]);
    expect(marks({ marks: ["high"] })).toEqual([{ name: "high", times: [T0 + 1000], begins: [T0 + 1000] }]);
    expect(marks({ marks: ["high"], window_s: 0.5 })).toEqual([{ name: "high", times: [], begins: [] }]);
  });

  test("without columns all numbers are drawn, and a record that is no row is no number", () => {
    const chart = streamChart([record(0, "broken"), ...rows], {});
    expect(chart.lines.map(({ name }) => name)).toEqual(["power", "speed"]);
    expect(chart.lines[0]?.values).toEqual([null, 0, 1, 2]);
  });
});

test("a click means the curve nearest to the pointer, and the rows of its key alone", () => {
  // what Plotly says of a click near the second of three curves at one time
  const point = (curveNumber: number, yPixel: number) => ({
    x: "2026-11-20 12:00:01",
    curveNumber,
    xPixel: 50,
    yPixel,
  });
  const click = {
    points: [point(0, 120), point(1, 20), point(2, 80)],
    event: { clientX: 150, clientY: 230 },
  };
  const picked = pickedIn(click, { left: 100, top: 200 });
  expect(picked).toEqual({ time: Date.parse("2026-11-20T12:00:01"), curve: 1 });
  expect(pickedIn({ points: [] }, { left: 0, top: 0 })).toBeNull();

  const rows = ["a", "b", "c"].map((hall, offset) => ({ ...record(1, { power: 1, hall }), offset }));
  const params = { columns: ["power"], by: "hall" };
  const key = streamChart(rows, params).lines[picked?.curve ?? 0]?.key;
  expect(rowsOfKey(rows, params, key).map(({ offset }) => offset)).toEqual([1]);
  expect(rowsOfKey(rows, params, undefined)).toHaveLength(3);
});
