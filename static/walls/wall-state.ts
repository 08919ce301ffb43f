/** What a wall shows beside its curves and load, and what time it is for the server. */
import { useEffect } from "react";
import { useNow } from "../shared/clock";
import type { TileState } from "../shared/types";
import { lookAt, soon, useSeen, type Seen } from "./look";
import { useWall } from "./wall-store";

/** Looks at the wall, and at once after each save. */
export function useWallState(wall: string): Seen {
  useEffect(() => lookAt(wall), [wall]);
  const seen = useSeen();
  const saved = useWall((state) => state.wall.revision);
  const stale = (seen.received?.state.revision ?? saved) < saved;
  useEffect(() => {
    if (stale) soon();
  }, [stale, saved]);
  return seen;
}

/** The state of a tile, and the present time by the server's clock: this browser's may be wrong. */
export function useTileState(id: string): { state: TileState | undefined; now: number } {
  const received = useSeen((seen) => seen.received);
  const here = useNow();
  if (!received) return { state: undefined, now: here };
  const now = Date.parse(received.state.at) + Math.max(0, here - received.at);
  return { state: received.state.tiles[id], now };
}
