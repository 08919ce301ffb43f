/** What a wall shows beside its curves and rows, and what time it is for the server. */
import { createContext, useContext } from "react";
import { get } from "../shared/api";
import { useNow } from "../shared/clock";
import type { TileState, WallState } from "../shared/types";
import { useLoaded } from "../shared/ui/parts";
import { wallPath } from "../shared/wall-tiles";

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

export function useWallState(wall: string): Shown {
  const { data, error } = useLoaded(
    `wall ${wall}`,
    async (signal) => ({ state: await get<WallState>(`${wallPath(wall)}/state`, signal), at: Date.now() }),
    EVERY_MS,
  );
  return { received: data, error };
}

/** The state of a tile, and the present time by the server's clock: this browser's may be wrong. */
export function useTileState(id: string): { state: TileState | undefined; now: number } {
  const { received } = useContext(WallStateContext);
  const here = useNow();
  if (!received) return { state: undefined, now: here };
  const now = Date.parse(received.state.at) + Math.max(0, here - received.at);
  return { state: received.state.tiles[id], now };
}
