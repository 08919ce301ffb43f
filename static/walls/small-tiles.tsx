/** What figures, pictures and texts show. */
import { TriangleAlert } from "lucide-react";
import type { CSSProperties } from "react";
import { pictureOf } from "../shared/pipeline-picture";
import { toneOf, wordOf } from "../shared/status";
import type { FigureTile, PictureTile, TextTile, TileState } from "../shared/types";
import { Skeleton } from "../shared/ui/parts";
import { namePx, PipelinePicture } from "../shared/ui/pipeline-picture";
import { Spark } from "../shared/ui/spark";
import { figureText, verdictOf } from "./age";
import type { Room } from "./room";

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

interface PictureProps {
  tile: PictureTile;
  state: TileState | undefined;
  room: Room;
}

/** From afar names that would be too small are left out: words say how many elements are in which state. */
export function PictureBody({ state, room }: PictureProps) {
  if (!state) return <Skeleton lines={2} height={40} />;
  if (!state.picture) return <p className="wall-none">There is no such pipeline any more.</p>;
  const { title, elements } = state.picture;
  const named = !room.afar || namePx(pictureOf(elements).view, room) >= room.least_px;
  return (
    <>
      {!named && (
        <ul className="wall-states">
          {statesOf(elements.map(({ status }) => status)).map(([status, count]) => (
            <li key={status} className={`status--${toneOf(status)}`}>
              {count} {wordOf(status)}
            </li>
          ))}
        </ul>
      )}
      <div className="wall-picture__drawn">
        <PipelinePicture title={title} elements={elements} named={named} />
      </div>
    </>
  );
}

/** How many elements are in each state: the most frequent first. */
export function statesOf(states: readonly (string | undefined)[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const state of states) if (state) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a);
}

export function TextBody({ tile }: { tile: TextTile }) {
  const size = tile.text.length < 40 ? "large" : tile.text.length < 200 ? "middle" : "small";
  return <p className={`wall-text wall-text--${size}`}>{tile.text}</p>;
}
