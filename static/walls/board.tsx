/** The tiles of a wall with what they show now. */
import { LayoutDashboard } from "lucide-react";
import { seconds } from "../shared/format";
import { useNow } from "../shared/clock";
import { useTimeRange } from "../shared/time-range";
import { Problem } from "../shared/ui/parts";
import { RangeBar } from "../shared/ui/range";
import { WallGrid } from "./grid";
import type { TileActions } from "./tile";
import type { Seen } from "./look";
import { useWall } from "./wall-store";
import "./walls.css";

/** A wall that had no answer for so long says so, ms: it looks every 2 s. */
const SILENT_MS = 10_000;

/** `actions`: what can be done with a tile; null: they are only looked at. */
export function Board({ shown, actions }: { shown: Seen; actions: TileActions | null }) {
  const tiles = useWall((state) => state.history.present.tiles);
  const held = useTimeRange((range) => range.held);
  const now = useNow();
  const { received, error } = shown;
  const silent_ms = received ? now - received.at : 0;
  return (
    <>
      {error && !received ? <Problem error={error} /> : null}
      {silent_ms > SILENT_MS && (
        <p className="notice notice--warning" role="status">
          The dashboard has not answered for {seconds(silent_ms)}. What you see is as old as that.
        </p>
      )}
      {held && <RangeBar follows={false} />}
      <WallGrid tiles={tiles} actions={actions} />
    </>
  );
}

export function EmptyWall({ locked, onAdd }: { locked: string | null; onAdd: () => void }) {
  return (
    <div className="card empty">
      <LayoutDashboard aria-hidden="true" />
      <h2>Nothing hangs here yet</h2>
      <p>
        A tile is a chart, a figure, a table, a pipeline or a text. Add one, drag it by its title to where you
        want it, and pull its corner to make it larger.
      </p>
      <button
        type="button"
        className="button button--primary"
        disabled={!!locked}
        title={locked ?? undefined}
        onClick={onAdd}
      >
        Add a tile
      </button>
    </div>
  );
}
