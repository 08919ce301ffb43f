import { useMemo } from "react";
import { toldRows } from "../shared/curve";
import { instant } from "../shared/format";
import { useTimeRange } from "../shared/time-range";
import type { ChartTile, TileState } from "../shared/types";
import { Chart } from "../shared/ui/chart";
import { Problem, Skeleton } from "../shared/ui/parts";
import { usualGap } from "./age";
import type { useTileCurves } from "./curves";
import { isTold } from "./small-tiles";
import { RANGE_S, wallChart } from "./series";

/** Its words grow with the tile: px. */
const TEXT = { least: 11, most: 30, share: 26 };
const HEAD_PX = 36;
const PLOT_PX_MIN = 60;

/** What is left of a tile's place for the plot, px. */
export const plotPx = (height: number): number => Math.max(PLOT_PX_MIN, height - HEAD_PX);

export const textPx = (height: number): number =>
  Math.round(Math.min(TEXT.most, Math.max(TEXT.least, height / TEXT.share)));

interface Props {
  tile: ChartTile;
  state: TileState | undefined;
  curves: ReturnType<typeof useTileCurves>;
  /** of the place for it, px */
  height: number;
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

export function ChartBody({ tile, state, curves, height, onPick }: Props) {
  const held = useTimeRange((range) => range.held);
  const named = JSON.stringify(
    state?.sources.map(({ pipeline, element, title }) => [`${pipeline}/${element}`, title]),
  );
  const chart = useMemo(() => {
    const titles = new Map<string, string>(JSON.parse(named ?? "[]") as [string, string][]);
    return wallChart(tile, curves.today, curves.before, titles);
  }, [tile, curves, named]);
  const text_px = textPx(height);
  const data = useMemo(
    () => ({
      ...chart,
      height: plotPx(height),
      text_px,
      ...(held || chart.times.length === 0 ? {} : { span_ms: spanOf(chart.times, tile.range_s ?? RANGE_S) }),
    }),
    [chart, height, text_px, held, tile.range_s],
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
    <div title={note.filter(Boolean).join(" ") || undefined}>
      <Chart {...data} of={tile.title || tile.id} onPick={onPick} />
    </div>
  );
}

/** The axis ends now only if its rows are of now: those of a recording have other times. */
function spanOf(times: ReadonlyArray<number | string>, range_s: number): number {
  const newest = instant(times.at(-1)) ?? 0;
  return Date.now() - newest < 1000 * range_s ? 1000 * range_s : 0;
}
