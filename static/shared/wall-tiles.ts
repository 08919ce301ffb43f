/** What every view knows of a wall: the sizes of its tiles, and where a new one goes. Pure. */
import type { Tile } from "./types";

export const COLUMNS = 24;
/** Characters of a wall's title. */
export const WALL_TITLE_MAX = 80;
export const TILES_MAX = 60;
/** The greatest height of a tile: rows. */
export const H_MAX = 50;
/** The greatest row at which a tile begins: a wall does not grow without end. */
const Y_MAX = 200;

export type Kind = Tile["kind"];

/** How large a new tile is, and how small it may become: columns and rows. */
export const SIZES: Record<Kind, { w: number; h: number; least: { w: number; h: number } }> = {
  chart: { w: 12, h: 8, least: { w: 4, h: 4 } },
  figure: { w: 6, h: 4, least: { w: 2, h: 2 } },
  table: { w: 8, h: 8, least: { w: 4, h: 3 } },
  picture: { w: 12, h: 6, least: { w: 4, h: 3 } },
  load: { w: 8, h: 6, least: { w: 4, h: 4 } },
  text: { w: 6, h: 3, least: { w: 2, h: 1 } },
};

export interface Place {
  x: number;
  y: number;
  w: number;
  h: number;
}

export const within = (value: number, least: number, most: number): number =>
  Math.min(most, Math.max(least, Math.round(value)));

/** The tile inside the grid, and no smaller than what it shows can be read at. */
export function bounded<P extends Place & { kind: Kind }>(tile: P): P {
  const { least } = SIZES[tile.kind];
  const w = within(tile.w, least.w, COLUMNS);
  return {
    ...tile,
    w,
    h: within(tile.h, least.h, H_MAX),
    x: within(tile.x, 0, COLUMNS - w),
    y: within(tile.y, 0, Y_MAX),
  };
}

export const overlap = (a: Place, b: Place): boolean => a.x < b.x + b.w && b.x < a.x + a.w;
const meet = (a: Place, b: Place): boolean => overlap(a, b) && a.y < b.y + b.h && b.y < a.y + a.h;
const bottom = (tiles: readonly Place[]): number => Math.max(0, ...tiles.map(({ y, h }) => y + h));

/** The tiles with this one added: at the first place from the top that has room for it. */
export function placed(tiles: readonly Tile[], added: Tile): readonly Tile[] {
  const size = SIZES[added.kind];
  const tile = bounded({ ...added, w: added.w || size.w, h: added.h || size.h });
  for (let y = 0; y <= bottom(tiles); y += 1)
    for (let x = 0; x + tile.w <= COLUMNS; x += 1) {
      const there = { ...tile, x, y };
      if (!tiles.some((other) => meet(there, other))) return [...tiles, bounded(there)];
    }
  return [...tiles, bounded({ ...tile, x: 0, y: bottom(tiles) })];
}

/** An id that no tile of the wall has: "chart-2". */
export function freeId(tiles: readonly Tile[], kind: Kind): string {
  const taken = new Set(tiles.map(({ id }) => id));
  for (let number = 1; ; number += 1) if (!taken.has(`${kind}-${number}`)) return `${kind}-${number}`;
}

export const wallPath = (id: string): string => `/walls/${encodeURIComponent(id)}`;
