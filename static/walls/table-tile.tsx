/** What a table's tile shows: the newest rows, as many as can be read. */
import { useEffect, useState } from "react";
import { instant, listed, moment, momentShort, toTheSecond } from "../shared/format";
import { page } from "../shared/page";
import { newestFirst, rowOf } from "../shared/rows/cells";
import { NO_TIME, RowTable } from "../shared/rows/table";
import { tracing, useTrace } from "../shared/rows/trace";
import type { Peeked, TableTile, TileState } from "../shared/types";
import { Skeleton } from "../shared/ui/parts";
import { decimalsOf, legible } from "./age";
import type { Room } from "./room";
import { isTold } from "./small-tiles";
import { fitTable, widthsOf } from "./table-fit";

/** Whoever has only a link to the wall sees rows, and not where they came from. */
const MAY_TRACE = page.user.username !== "";
/** So long rows stand still after the pointer moved over them, ms. */
const HOLD_MS = 4000;

/** From afar a second is enough, and of another day its date and a minute. */
const briefly = (time_ms: number): string =>
  new Date(time_ms).toDateString() === new Date().toDateString()
    ? toTheSecond(time_ms)
    : momentShort(time_ms);

interface Props {
  tile: TableTile;
  state: TileState | undefined;
  room: Room;
}

export function TableBody({ tile, state, room }: Props) {
  const { trace, dialog } = useTrace(tile.pipeline);
  const { held, hold } = useHeld(state?.rows ?? null);
  const given = held ?? state?.rows;
  if (!given) return isTold(state) ? null : <Skeleton lines={4} />;
  if (given.records.length === 0) return <p className="wall-none">There is no row yet.</p>;
  const traced = MAY_TRACE && !room.afar;
  const timeWords = room.afar ? briefly : moment;
  const named = tile.columns.map((name) => ({ name }));
  const rows = newestFirst(given.records).map((record) => {
    const row = rowOf(record, named);
    return { ...row, values: row.values.map(legible) };
  });
  const columns = named.map(({ name }, place) => ({
    name,
    decimals: decimalsOf(rows.map(({ values }) => values[place])),
  }));
  const times = rows.map(({ at }) => {
    const then = instant(at);
    return then === null ? NO_TIME : timeWords(then);
  });
  const fit = fitTable(room, widthsOf(columns, rows, times, traced), rows.length);
  const left = tile.columns.slice(fit.columns);
  return (
    <>
      <div
        className="wall-table__rows"
        style={{ fontSize: `${fit.text_px}px` }}
        onPointerMove={traced ? hold : undefined}
      >
        <RowTable
          label={tile.title || "Rows"}
          columns={columns.slice(0, fit.columns)}
          rows={rows.slice(0, fit.rows)}
          timed={fit.timed}
          timeWords={timeWords}
          onTrace={traced ? tracing(given.stream, trace) : undefined}
        />
        {left.length > 0 && <p className="wall-none ellipsis">No room for {listed(left)}</p>}
        {held && <span className="wall-held">Held while you point</span>}
      </div>
      {dialog}
    </>
  );
}

/** Rows that stand still while a pointer moves over them, so that one can be hit. One that rests holds none. */
function useHeld(rows: Peeked | null) {
  const [held, setHeld] = useState<{ rows: Peeked | null; until: number } | null>(null);
  useEffect(() => {
    if (!held) return;
    const timer = window.setTimeout(() => setHeld(null), held.until - Date.now());
    return () => window.clearTimeout(timer);
  }, [held]);
  const hold = () => setHeld((before) => ({ rows: before?.rows ?? rows, until: Date.now() + HOLD_MS }));
  return { held: held?.rows ?? null, hold };
}
