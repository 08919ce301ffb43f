/** A tile of load: asks for the points that are new, and draws those of its time. */
import { useEffect, useMemo, useState } from "react";
import { Asker } from "../shared/asker";
import { loadChart } from "../shared/load-charts";
import { withGaps } from "../shared/points";
import type { LoadPoint, LoadTile, TileState } from "../shared/types";
import { Chart } from "../shared/ui/chart";
import { Problem, Skeleton } from "../shared/ui/parts";
import { plotPx, textPx } from "./chart-tile";
import { askLoad, soon } from "./look";
import type { Room } from "./room";
import { isTold } from "./small-tiles";
import { useWall } from "./wall-store";

const EVERY_MS = 4000;

/** The points of what the server has of the tile; null before the first answer. */
function useLoad(saved: LoadTile | undefined) {
  const [points, setPoints] = useState<LoadPoint[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const asked = saved && JSON.stringify([saved.id, saved.figure, saved.pipeline, saved.element, saved.node]);
  const range_ms = 1000 * (saved?.range_s ?? 0);
  useEffect(() => {
    if (!saved) return;
    setPoints(null);
    const asker = new Asker();
    let known: LoadPoint[] = [];
    const load = () => askLoad({ tile: saved.id, after: known.at(-1)?.t ?? 0 });
    const take = (fresh: LoadPoint[]) => {
      const all = [...known, ...fresh];
      known = all.filter(({ t }) => t > (all.at(-1)?.t ?? 0) - range_ms);
      setPoints(known);
      setError(null);
    };
    const ask = () => {
      if (document.visibilityState === "visible") asker.again(load, take, setError);
    };
    ask();
    soon();
    const timer = window.setInterval(ask, EVERY_MS);
    return () => {
      window.clearInterval(timer);
      asker.stop();
    };
    // `asked` says what the tile asks for
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [asked, range_ms]);
  return { points, error };
}

interface Props {
  tile: LoadTile;
  state: TileState | undefined;
  room: Room;
}

export function LoadBody({ tile, state, room }: Props) {
  const { height } = room;
  const text_px = textPx(room);
  const saved = useWall((walls) => walls.wall.tiles.find(({ id }) => id === tile.id));
  const { points, error } = useLoad(saved?.kind === "load" ? saved : undefined);
  const chart = useMemo(() => {
    const drawn = loadChart(tile.figure, withGaps(points ?? []));
    return {
      ...drawn,
      title: "",
      height: plotPx(height),
      text_px,
      span_ms: 1000 * (tile.range_s ?? 0),
    };
  }, [tile.figure, tile.range_s, points, height, text_px]);
  if (points) return <Chart {...chart} of={tile.title || tile.id} />;
  if (isTold(state)) return null;
  return error ? <Problem error={error} /> : <Skeleton lines={3} height={40} />;
}
