/** Where the tiles of a wall lie on its grid. Pure: tiles come in as a list and go out as a new one. */
import { verticalCompactor, type LayoutItem } from "react-grid-layout/core";
import type { Tile } from "../shared/types";
import { bounded, COLUMNS, H_MAX, overlap, SIZES, within, type Place } from "../shared/wall-tiles";

export const layoutOf = (tiles: readonly Tile[]): LayoutItem[] =>
  tiles.map(({ id, kind, x, y, w, h }) => {
    const { least } = SIZES[kind];
    return { i: id, x, y, w, h, minW: Math.min(w, least.w), minH: Math.min(h, least.h), maxH: H_MAX };
  });

const samePlace = (a: Place, b: Place): boolean => a.x === b.x && a.y === b.y && a.w === b.w && a.h === b.h;

/** The tiles at the places of a layout; the same list if none has moved. */
export function arranged(tiles: readonly Tile[], layout: readonly LayoutItem[]): readonly Tile[] {
  const places = new Map(layout.map((item) => [item.i, item]));
  const moved = tiles.map((tile) => {
    const place = places.get(tile.id);
    return !place || samePlace(tile, place)
      ? tile
      : bounded({ ...tile, x: place.x, y: place.y, w: place.w, h: place.h });
  });
  return moved.every((tile, index) => tile === tiles[index]) ? tiles : moved;
}

/** The tiles moved up as far as there is room: no two lie over each other. */
export const settled = (tiles: readonly Tile[]): readonly Tile[] =>
  arranged(tiles, verticalCompactor.compact(layoutOf(tiles), COLUMNS));

/** The tile goes to a place; what lies there and below it makes room. */
function put(tiles: readonly Tile[], tile: Tile): readonly Tile[] {
  const there = bounded(tile);
  return settled(
    tiles.map((other) => {
      if (other.id === there.id) return there;
      return overlap(other, there) && other.y + other.h > there.y
        ? { ...other, y: other.y + there.h }
        : other;
    }),
  );
}

type Step = "left" | "right" | "up" | "down";

const nearest = (tiles: readonly Tile[], tile: Tile, side: "up" | "down"): Tile | undefined =>
  tiles
    .filter((other) => other.id !== tile.id && overlap(other, tile))
    .filter((other) => (side === "up" ? other.y < tile.y : other.y > tile.y))
    .sort((a, b) => (side === "up" ? b.y + b.h - (a.y + a.h) : a.y - b.y))[0];

/** Moves a tile by one column, or before or behind its neighbour above or below. */
export function stepped(tiles: readonly Tile[], id: string, step: Step): readonly Tile[] {
  const tile = tiles.find((each) => each.id === id);
  if (!tile) return tiles;
  if (step === "left" || step === "right") {
    const x = within(tile.x + (step === "left" ? -1 : 1), 0, COLUMNS - tile.w);
    return x === tile.x ? tiles : put(tiles, { ...tile, x });
  }
  const neighbour = nearest(tiles, tile, step);
  if (!neighbour) return tiles;
  if (step === "up") return put(tiles, { ...tile, y: neighbour.y });
  // the neighbour comes up to where the tile is, and the tile goes behind it
  return put(tiles, { ...neighbour, y: tile.y });
}

/** Makes a tile wider or higher, or less so, by one column or row. */
export function resized(tiles: readonly Tile[], id: string, step: Step): readonly Tile[] {
  const tile = tiles.find((each) => each.id === id);
  if (!tile) return tiles;
  const wider = { left: -1, right: 1, up: 0, down: 0 }[step];
  const higher = { left: 0, right: 0, up: -1, down: 1 }[step];
  const next = bounded({ ...tile, w: tile.w + wider, h: tile.h + higher });
  // at the right edge it grows to the left
  return samePlace(next, tile) ? tiles : put(tiles, next);
}

export const without = (tiles: readonly Tile[], id: string): readonly Tile[] =>
  settled(tiles.filter((tile) => tile.id !== id));

/** As a phone shows them, one below the other: by rows, each from the left. */
export const inOrder = (tiles: readonly Tile[]): Tile[] => [...tiles].sort((a, b) => a.y - b.y || a.x - b.x);

/** Where a tile lies, in words for a screen reader. */
export const placeWords = ({ x, y, w, h }: Place): string =>
  `column ${x + 1}, row ${y + 1}, ${w} wide, ${h} high`;

/** How many columns and rows of the grid the tiles take. */
export const extentOf = (tiles: readonly Tile[]): { columns: number; rows: number } => ({
  columns: Math.max(1, ...tiles.map(({ x, w }) => x + w)),
  rows: Math.max(1, ...tiles.map(({ y, h }) => y + h)),
});
