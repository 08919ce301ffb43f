import { expect, test } from "vitest";
import type { PeekRecord } from "../../shared/types";
import { chartTile, tableTile } from "../live/wall-tile";

const records: PeekRecord[] = [
  {
    partition: 0,
    offset: 0,
    at: "2026-11-28T12:00:00Z",
    key: "m1",
    value: { machine: "m1", kw: 3, temp: 40 },
  },
];

test("a chart hangs with the columns that it draws, its curves, its time and its limit", () => {
  const params = { by: "machine", window_s: 20, limit: 80 };
  expect(chartTile("p", "join.late", params, records)).toMatchObject({
    kind: "chart",
    series: [
      { pipeline: "p", element: "join", output: "late", column: "kw", by: "machine" },
      { pipeline: "p", element: "join", output: "late", column: "temp", by: "machine" },
    ],
    range_s: 60,
    high: 80,
  });
  expect(chartTile("p", "e", { columns: ["temp"] }, records)).toMatchObject({
    series: [{ element: "e", output: "", column: "temp", by: null }],
    range_s: 300,
    high: null,
  });
});

test("a chart that draws the limit of an alarm hangs with that alarm, and not with today's number", () => {
  expect(chartTile("p", "e", { limit: 80, limit_of: "alarm" }, records)).toMatchObject({
    high: null,
    limit_of: { pipeline: "p", element: "alarm" },
  });
});

test("a table hangs with its columns, and no more rows than a wall shows", () => {
  expect(tableTile("p", "e", undefined, 500, records)).toMatchObject({
    kind: "table",
    element: "e",
    columns: ["machine", "kw", "temp"],
    rows: 50,
  });
  expect(tableTile("p", "e", ["kw"], 5, records)).toMatchObject({ columns: ["kw"], rows: 5 });
});
