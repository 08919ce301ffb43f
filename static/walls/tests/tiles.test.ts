import { describe, expect, test } from "vitest";
import type { Tile } from "../../shared/types";
import { COLUMNS, freeId, placed } from "../../shared/wall-tiles";
import { arranged, inOrder, resized, settled, stepped, without } from "../tiles";

const text = (id: string, x: number, y: number, w = 6, h = 3): Tile => ({
  id,
  kind: "text",
  text: id,
  x,
  y,
  w,
  h,
});
const places = (tiles: readonly Tile[]) =>
  Object.fromEntries(tiles.map(({ id, x, y, w, h }) => [id, [x, y, w, h]]));

const meeting = (tiles: readonly Tile[]) =>
  tiles.flatMap((a, index) =>
    tiles
      .slice(index + 1)
      .filter((b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h)
      .map((b) => `${a.id} ${b.id}`),
  );

describe("tiles of a wall", () => {
  test("a new one takes the first free place from the top", () => {
    const tiles = [text("a", 0, 0), text("b", 12, 0)];
    expect(places(placed(tiles, text("c", 0, 0)))["c"]).toEqual([6, 0, 6, 3]);
    const full = [text("a", 0, 0, COLUMNS, 4)];
    expect(places(placed(full, text("c", 9, 9)))["c"]).toEqual([0, 4, 6, 3]);
  });

  test("a new one without a size gets the one of its kind, and never leaves the grid", () => {
    const [chart] = placed([], text("a", 0, 0, 0, 0));
    expect(chart).toMatchObject({ w: 6, h: 3 });
    const [wide] = placed([], text("a", 20, 0, 40, 3));
    expect(wide).toMatchObject({ x: 0, w: COLUMNS });
  });

  test("moves one column aside, not past the edge", () => {
    const tiles = [text("a", 0, 0)];
    expect(stepped(tiles, "a", "left")).toBe(tiles);
    expect(places(stepped(tiles, "a", "right"))["a"]).toEqual([1, 0, 6, 3]);
    const right = [text("a", COLUMNS - 6, 0)];
    expect(stepped(right, "a", "right")).toBe(right);
  });

  test("changes places with the neighbour below, and back", () => {
    const tiles = [text("a", 0, 0, 6, 2), text("b", 0, 2, 6, 5)];
    const down = stepped(tiles, "a", "down");
    expect(places(down)).toEqual({ a: [0, 5, 6, 2], b: [0, 0, 6, 5] });
    expect(places(stepped(down, "a", "up"))).toEqual(places(tiles));
    expect(stepped(down, "a", "down")).toBe(down);
  });

  test("a tile that grows pushes what is below", () => {
    const tiles = [text("a", 0, 0), text("b", 0, 3)];
    expect(places(resized(tiles, "a", "down"))).toEqual({ a: [0, 0, 6, 4], b: [0, 4, 6, 3] });
    expect(places(resized(tiles, "a", "left"))["a"]).toEqual([0, 0, 5, 3]);
  });

  test("no two ever meet, whatever is done", () => {
    let tiles: readonly Tile[] = [];
    for (let n = 0; n < 12; n += 1) tiles = placed(tiles, text(`t${n}`, 0, 0, 3 + (n % 5), 1 + (n % 4)));
    const steps = ["left", "right", "up", "down"] as const;
    for (let n = 0; n < 400; n += 1) {
      const id = `t${(n * 7) % 12}`;
      const step = steps[(n * 13 + (n >> 2)) % 4] ?? "up";
      tiles = n % 3 === 0 ? resized(tiles, id, step) : stepped(tiles, id, step);
      expect(meeting(tiles)).toEqual([]);
      expect(
        tiles.filter(({ x, w, y, h }) => x < 0 || x + w > COLUMNS || y < 0 || y > 200 || h > 50),
      ).toEqual([]);
    }
  });

  test("removing one lets the others move up", () => {
    expect(places(without([text("a", 0, 0), text("b", 0, 3)], "a"))).toEqual({ b: [0, 0, 6, 3] });
  });

  test("a layout that moves nothing is no change", () => {
    const tiles = [text("a", 0, 0)];
    expect(arranged(tiles, [{ i: "a", x: 0, y: 0, w: 6, h: 3 }])).toBe(tiles);
    expect(settled(tiles)).toBe(tiles);
    expect(places(arranged(tiles, [{ i: "a", x: 2, y: 1, w: 6, h: 3 }]))["a"]).toEqual([2, 1, 6, 3]);
  });

  test("stand by rows on a phone, and get ids that are free", () => {
    expect(inOrder([text("b", 6, 0), text("c", 0, 3), text("a", 0, 0)]).map(({ id }) => id)).toEqual([
      "a",
      "b",
      "c",
    ]);
    expect(freeId([text("text-1", 0, 0)], "text")).toBe("text-2");
  });
});
