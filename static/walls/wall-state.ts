/** What a wall shows beside its curves and load, and what time it is for the server. */
import { createContext, useContext, useEffect, useRef } from "react";
import { get } from "../shared/api";
import { useNow } from "../shared/clock";
import type { TileState, WallState } from "../shared/types";
import { useLoaded } from "../shared/ui/parts";
import { wallPath } from "../shared/wall-tiles";
import { useWall } from "./wall-store";

const EVERY_MS = 2000;

interface Received {
  state: WallState;
  /** by this browser's clock, ms since the epoch */
  at: number;
}

interface Shown {
  received: Received | undefined;
  error: unknown;
}

export const WallStateContext = createContext<Shown>({ received: undefined, error: null });

/** One question for all tiles, asked again as soon as the wall was saved. */
export function useWallState(wall: string): Shown {
  const last = useRef<WallState | null>(null);
  const { data, error, reload } = useLoaded(
    `wall ${wall}`,
    async (signal) => {
      const answer = await get<WallState>(`${wallPath(wall)}/state`, signal);
      last.current = withOld(last.current, answer);
      return { state: last.current, at: Date.now() };
    },
    EVERY_MS,
  );
  const saved = useWall((state) => state.wall.revision);
  const stale = data !== undefined && data.state.revision < saved;
  useEffect(() => {
    if (stale) reload();
    // once for each save
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [stale, saved]);
  return { received: data, error };
}

/** The answer, with what tiles showed before where there is a problem now. They say so, and are grey. */
export function withOld(before: WallState | null, now: WallState): WallState {
  if (!before) return now;
  const tiles = Object.entries(now.tiles).map(([id, tile]): [string, TileState] => {
    const old = before.tiles[id];
    const [source] = tile.sources;
    const same = old && source?.problem && sourceOf(old) === sourceOf(tile);
    return [id, same ? { ...tile, figure: tile.figure ?? old.figure, rows: tile.rows ?? old.rows } : tile];
  });
  return { ...now, tiles: Object.fromEntries(tiles) };
}

const sourceOf = ({ sources: [source] }: TileState): string => `${source?.pipeline}/${source?.element}`;

/** The state of a tile, and the present time by the server's clock: this browser's may be wrong. */
export function useTileState(id: string): { state: TileState | undefined; now: number } {
  const { received } = useContext(WallStateContext);
  const here = useNow();
  if (!received) return { state: undefined, now: here };
  const now = Date.parse(received.state.at) + Math.max(0, here - received.at);
  return { state: received.state.tiles[id], now };
}
