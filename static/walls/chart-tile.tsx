import { useMemo, type CSSProperties } from "react";
import { toldRows } from "../shared/curve";
import { instant } from "../shared/format";
import { useTimeRange } from "../shared/time-range";
import type { ChartTile, Limits, TileState } from "../shared/types";
import { Chart } from "../shared/ui/chart";
import { Problem, Skeleton } from "../shared/ui/parts";
import { usualGap } from "./age";
import type { useTileCurves } from "./curves";
import type { Room } from "./room";
import { isTold } from "./small-tiles";
import { RANGE_S, wallChart } from "./series";

/** Its words grow with the tile: px. */
const TEXT = { most: 30, share: 26 };
const HEAD_PX = 36;
const PLOT_PX_MIN = 60;
/** The names of curves stand in lines above the plot: px, as walls.css has them. */
const NAME = { most: 28, share: 0.01, letter: 0.58, room: 36, line: 1.6, buttons: 120 };
const NAME_LINES_MAX = 4;

/** How large the names of curves are on a window so wide, px. */
const namePx = (window_px: number, least_px: number): number =>
  Math.max(least_px, Math.min(NAME.most, window_px * NAME.share));

/** How many lines the names of curves need in a tile so wide (px), each whole. `px`: how large they are. */
export function nameLines(names: readonly string[], width: number, px: number): number {
  const room = Math.max(NAME.buttons, width - NAME.buttons);
  let [lines, used] = [1, 0];
  for (const name of names) {
    const wide = name.length * NAME.letter * px + NAME.room;
    if (used > 0 && used + wide > room) [lines, used] = [lines + 1, 0];
    used += wide;
  }
  return Math.min(NAME_LINES_MAX, lines);
}

/** What the lines of names take, px. */
export const headPx = (lines: number, px: number): number =>
  Math.max(HEAD_PX, 4 + Math.ceil(lines * Math.max(24, px * NAME.line)));

/** What is left of a tile's place for the plot, px. */
export const plotPx = (height: number, head = HEAD_PX): number => Math.max(PLOT_PX_MIN, height - head);

/** How large the words at the axes are, px. */
export const textPx = ({ height, least_px }: Room): number =>
  Math.ceil(Math.max(least_px, Math.min(TEXT.most, height / TEXT.share)));

interface Props {
  tile: ChartTile;
  state: TileState | undefined;
  curves: ReturnType<typeof useTileCurves>;
  room: Room;
  onPick?: ((time: number) => void) | undefined;
}

/** How far apart the rows of the chart's busiest curve usually are, ms. */
export function chartGap({ today }: ReturnType<typeof useTileCurves>): number | null {
  const gaps = today.flatMap((gathered) => {
    const gap = usualGap(gathered?.records.map(({ at }) => instant(at) ?? 0) ?? []);
    return gap === null ? [] : [gap];
  });
  return gaps.length ? Math.max(...gaps) : null;
}

export function ChartBody({ tile, state, curves, room, onPick }: Props) {
  const { height, width } = room;
  const held = useTimeRange((range) => range.held);
  const named = JSON.stringify(
    state?.sources.map(({ pipeline, element, title }) => [`${pipeline}/${element}`, title]),
  );
  // the same text in each look in which it is the same
  const limit = state?.limits && JSON.stringify(state.limits);
  const chart = useMemo(() => {
    const titles = new Map<string, string>(JSON.parse(named ?? "[]") as [string, string][]);
    return wallChart(tile, curves.today, curves.before, titles, limit ? (JSON.parse(limit) as Limits) : null);
  }, [tile, curves, named, limit]);
  const text_px = textPx(room);
  const names = chart.lines.length > 1 ? chart.lines.map(({ name }) => name) : [];
  const name_px = namePx(window.innerWidth, room.least_px);
  const head = headPx(nameLines(names, width, name_px), name_px);
  const data = useMemo(
    () => ({
      ...chart,
      height: plotPx(height, head),
      text_px,
      ...(held ? {} : { span_ms: spanOf(chart.times, tile.range_s ?? RANGE_S) }),
    }),
    [chart, height, head, text_px, held, tile.range_s],
  );
  const answered = curves.today.some(Boolean);
  if (!answered && isTold(state)) return null;
  if (!answered) return curves.error ? <Problem error={curves.error} /> : <Skeleton lines={3} height={40} />;
  const told = curves.today.map((gathered) => gathered && toldRows(gathered, [])).filter(Boolean);
  const note = [
    told.at(0) ?? "",
    chart.omitted.length > 0 ? `${chart.omitted.length} curves are not drawn.` : "",
  ];
  return (
    <div
      title={note.filter(Boolean).join(" ") || undefined}
      style={{ "--head": `${head - 4}px` } as CSSProperties}
    >
      <Chart {...data} of={tile.title || tile.id} onPick={onPick} />
    </div>
  );
}

/** The axis ends now only if its rows are of now: those of a recording have other times. */
function spanOf(times: ReadonlyArray<number | string>, range_s: number): number {
  if (times.length === 0) return 1000 * range_s;
  const newest = instant(times.at(-1)) ?? 0;
  return Date.now() - newest < 1000 * range_s ? 1000 * range_s : 0;
}
