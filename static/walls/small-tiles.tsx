/** What the tiles other than charts show. */
import { TriangleAlert } from "lucide-react";
import { useEffect, useState, type CSSProperties } from "react";
import { page } from "../shared/page";
import { newestFirst, rowOf } from "../shared/rows/cells";
import { RowTable } from "../shared/rows/table";
import { tracing, useTrace } from "../shared/rows/trace";
import type { FigureTile, Peeked, PictureTile, TableTile, TextTile, TileState } from "../shared/types";
import { Skeleton } from "../shared/ui/parts";
import { PipelinePicture } from "../shared/ui/pipeline-picture";
import { Spark } from "../shared/ui/spark";
import { decimalsOf, figureText, legible, lettersOf, verdictOf } from "./age";

/** Whoever has only a link to the wall sees rows, and not where they came from. */
const MAY_TRACE = page.user.username !== "";
/** So long rows stand still after the pointer moved over them, ms. */
const HOLD_MS = 4000;

/** Whether the tile says already why there is nothing. */
export const isTold = (state: TileState | undefined): boolean =>
  state?.sources.some(({ problem }) => problem !== null) ?? false;

export function FigureBody({ tile, state }: { tile: FigureTile; state: TileState | undefined }) {
  if (!state?.figure) return isTold(state) ? null : <Skeleton lines={1} height={40} />;
  const { value, points } = state.figure;
  const text = figureText(value, tile.decimals);
  const { low, high } = state.limits ?? tile;
  const verdict = verdictOf(value, low, high);
  const broken = verdict === "high" ? high : low;
  const limit = verdict && `${verdict === "high" ? "above" : "below"} ${broken?.toLocaleString("en")}`;
  const length = text.length + (tile.unit ? 0.7 * (tile.unit.length + 1) : 0);
  return (
    <div className="wall-figure" data-verdict={verdict ?? undefined}>
      <span className="wall-figure__value num" style={{ "--letters": Math.max(3, length) } as CSSProperties}>
        {text}
        {tile.unit && <span className="wall-figure__unit"> {tile.unit}</span>}
      </span>
      {limit && (
        <span className="wall-figure__limit">
          <TriangleAlert aria-hidden="true" />
          {limit}
        </span>
      )}
      {points.length > 1 && (
        <span className="wall-figure__spark">
          <Spark
            values={sparkValues(points.map(([, each]) => each))}
            label={`The last ${points.length} values of ${tile.series.column}`}
          />
        </span>
      )}
    </div>
  );
}

/** From the least to the greatest: a curve that is far from 0 still shows how it goes. */
function sparkValues(values: number[]): number[] {
  const least = Math.min(...values);
  const span = Math.max(...values) - least;
  return span === 0 ? values.map(() => 0.5) : values.map((value) => (value - least) / span);
}

export function TableBody({ tile, state }: { tile: TableTile; state: TileState | undefined }) {
  const { trace, dialog } = useTrace(tile.pipeline);
  const { held, hold } = useHeld(state?.rows ?? null);
  const shown = held ?? state?.rows;
  if (!shown) return isTold(state) ? null : <Skeleton lines={4} />;
  if (shown.records.length === 0) return <p className="wall-none">There is no row yet.</p>;
  const named = tile.columns.map((name) => ({ name }));
  const rows = newestFirst(shown.records).map((record) => {
    const row = rowOf(record, named);
    return { ...row, values: row.values.map(legible) };
  });
  const columns = named.map(({ name }, place) => ({
    name,
    decimals: decimalsOf(rows.map(({ values }) => values[place])),
  }));
  const letters = lettersOf(columns, rows, MAY_TRACE);
  return (
    <>
      <div
        className="wall-table"
        style={{ "--letters": letters } as CSSProperties}
        onPointerMove={MAY_TRACE ? hold : undefined}
      >
        <RowTable
          label={tile.title || "Rows"}
          columns={columns}
          rows={rows}
          onTrace={MAY_TRACE ? tracing(shown.stream, trace) : undefined}
        />
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

export function PictureBody({ state }: { tile: PictureTile; state: TileState | undefined }) {
  if (!state) return <Skeleton lines={2} height={40} />;
  if (!state.picture) return <p className="wall-none">There is no such pipeline any more.</p>;
  const { title, elements } = state.picture;
  return (
    <div className="wall-picture">
      <PipelinePicture title={title} elements={elements} named />
    </div>
  );
}

export function TextBody({ tile }: { tile: TextTile }) {
  const size = tile.text.length < 40 ? "large" : tile.text.length < 200 ? "middle" : "small";
  return <p className={`wall-text wall-text--${size}`}>{tile.text}</p>;
}
