/** The wall of what was made of a file. */
import { get, post, request } from "../../shared/api";
import type { Tile, Wall, WallItem } from "../../shared/types";
import { COLUMNS, freeId, placed, SIZES, wallPath, WALL_TITLE_MAX } from "../../shared/wall-tiles";
import { averageName, type Made, type Wish } from "./wish";

const HOUR_S = 3600;
/** The half of a wall that the chart leaves. */
const ALARMS_W = COLUMNS - SIZES.chart.w;
const NOWHERE = { id: "", x: 0, y: 0, w: 0, h: 0 };

/**
 * Pure: the averages as a chart, below it the pipeline as it is drawn, and the alarms beside them. None has a
 * title or limit of its own: those of the elements are shown, also when they are changed later.
 */
export function tilesOf(pipeline: string, wish: Wish, { average, alarm }: Made): readonly Tile[] {
  const chart: Tile = {
    ...NOWHERE,
    kind: "chart",
    series: [{ pipeline, element: average, column: averageName(wish), by: wish.by || null }],
    range_s: HOUR_S,
    ...(alarm && { limit_of: { pipeline, element: alarm } }),
  };
  const alarms: Tile[] = alarm
    ? [
        {
          ...NOWHERE,
          w: ALARMS_W,
          kind: "table",
          pipeline,
          element: alarm,
          columns: [...(wish.by ? [wish.by] : []), "alarm", "since", "worst"],
          rows: 10,
        },
      ]
    : [];
  const picture: Tile = { ...NOWHERE, kind: "picture", pipeline };
  return [chart, ...alarms, picture].reduce<readonly Tile[]>(
    (tiles, tile) => placed(tiles, { ...tile, id: freeId(tiles, tile.kind) }),
    [],
  );
}

/** Pure: a title that no wall has. */
export function freeTitle(wanted: string, walls: readonly Pick<WallItem, "title">[]): string {
  const taken = new Set(walls.map(({ title }) => title.toLowerCase()));
  const base = wanted.slice(0, WALL_TITLE_MAX - 4);
  for (let number = 1; ; number += 1) {
    const title = number === 1 ? base : `${base} ${number}`;
    if (!taken.has(title.toLowerCase())) return title;
  }
}

export const wallList = (signal?: AbortSignal): Promise<WallItem[]> => get<WallItem[]>("/walls", signal);

export async function makeWall(title: string, tiles: readonly Tile[]): Promise<Wall> {
  const walls = await wallList();
  const wall = await post<Wall>("/walls", { title: freeTitle(title, walls) });
  return request<Wall>("PUT", wallPath(wall.id), {
    body: { title: wall.title, tiles },
    headers: { "If-Match": `"${wall.revision}"` },
  });
}
