import { expect, test } from "vitest";
import type { TileState, WallState } from "../../shared/types";
import { withOld } from "../wall-state";

const record = { partition: 0, offset: 1, at: "2026-11-29T12:00:00Z", key: null, value: { n: 1 } };
const tile = (problem: string | null, element = "power"): TileState => ({
  sources: [{ pipeline: "p", element, title: element, status: "running", last_row_at: null, problem }],
  figure: null,
  rows: problem === null ? { stream: element, records: [record] } : null,
  picture: null,
});
const state = (tiles: Record<string, TileState>): WallState => ({ at: "", revision: 1, tiles });

test("a table that cannot be read keeps its rows and says why, and one of another element does not", () => {
  const before = state({ a: tile(null), b: tile(null), c: tile(null) });
  const now = state({ a: tile("away"), b: tile("away", "other"), c: tile(null), d: tile("away") });
  const { a, b, c, d } = withOld(before, now).tiles;
  expect(a).toEqual({ ...tile(null), sources: tile("away").sources });
  expect([b, c, d]).toEqual([tile("away", "other"), tile(null), tile("away")]);
  expect(withOld(null, now)).toBe(now);
});
