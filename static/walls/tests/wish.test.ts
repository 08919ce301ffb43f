import { describe, expect, test } from "vitest";
import type { Tile } from "../../shared/types";
import { faultOf, NO_WISH, numberIn, tileOf, wishOf } from "../wish";

const place = { id: "a", x: 1, y: 2, w: 6, h: 4, title: "Power" };
const from = { pipeline: "p", element: "e", output: "" };
const TILES: Tile[] = [
  {
    ...place,
    kind: "chart",
    series: [{ ...from, column: "kw", by: "machine", key: null, axis: "right", compare_yesterday: true }],
    range_s: 86_400,
    low: null,
    high: 80,
    limit_of: null,
    annotations: [{ at: "2026-11-28T12:00:00Z", text: "oven on", by: "ada" }],
  },
  {
    ...place,
    kind: "figure",
    series: { ...from, column: "kw" },
    low: 1,
    high: null,
    limit_of: null,
    unit: "kW",
    decimals: 1,
  },
  {
    ...place,
    kind: "figure",
    series: { ...from, column: "kw" },
    low: null,
    high: null,
    limit_of: { pipeline: "p", element: "alarm" },
    unit: "",
    decimals: null,
  },
  { ...place, kind: "table", ...from, columns: ["kw", "at"], rows: 20 },
  { ...place, kind: "picture", pipeline: "p" },
  { ...place, kind: "load", figure: "lag", pipeline: "p", element: "e", node: "", range_s: 300 },
  { ...place, kind: "load", figure: "cpu", pipeline: "", element: "", node: "edge-a", range_s: 900 },
  { ...place, kind: "text", text: "Hall 3" },
];

describe("the wish for a tile", () => {
  test.each(TILES)("gives the same $kind back that it was made of", (tile) => {
    expect(tileOf(wishOf(tile))).toEqual(tile);
    expect(faultOf(wishOf(tile))).toBeNull();
  });

  test("says what is missing", () => {
    expect(faultOf(NO_WISH)).toBe("Choose a pipeline.");
    expect(faultOf({ ...NO_WISH, pipeline: "p" })).toBe("Choose a column.");
    expect(faultOf({ ...NO_WISH, kind: "text", text: "  " })).toBe("Write the text.");
    const table = { ...NO_WISH, kind: "table" as const, pipeline: "p", columns: ["a"] };
    expect(["0", "51", "2.5", "x", ""].map((rows) => faultOf({ ...table, rows }))).toEqual(
      Array(5).fill("Rows are a whole number from 1 to 50."),
    );
  });

  test("does not take limits that are none", () => {
    const chart = wishOf(TILES[0] as Tile);
    expect(faultOf({ ...chart, low: "a" })).toMatch("A limit is a number");
    expect(faultOf({ ...chart, low: "80" })).toMatch("below the upper one");
    expect(faultOf({ ...chart, low: "2,5" })).toBeNull();
  });
});

test("a number may have a comma, and nothing is no number", () => {
  expect([numberIn(" 2,5 "), numberIn("-3"), numberIn("")]).toEqual([2.5, -3, null]);
});
