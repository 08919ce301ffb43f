import { useMemo } from "react";
import { elementPath } from "../../shared/api";
import { useNode } from "../../shared/live";
import { useLivePoints } from "../../shared/live-points";
import { loadChart } from "../../shared/load-charts";
import { marksIn } from "../../shared/marks";
import { pointOf } from "../../shared/points";
import { spanOf, useTimeRange, within } from "../../shared/time-range";
import type { ElementPoint, LiveElement } from "../../shared/types";
import { Chart, ChartCards, type ChartData } from "../../shared/ui/chart";
import { Problem, Skeleton } from "../../shared/ui/parts";
import { MarkLegend, RangeBar } from "../../shared/ui/range";
import { useMarks } from "./marks";

function usePoints(pipeline: string, element: LiveElement) {
  const node = useNode(element.node ?? "");
  const newest = useMemo(
    () => (["deploying", "starting"].includes(element.status) ? null : pointOf(element, node)),
    // the node is a new object with each message, but its figures change only with a report
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [element, node?.last_seen_at],
  );
  return useLivePoints(elementPath(pipeline, element.id), newest);
}

function chartsOf(points: ElementPoint[]): ChartData[] {
  const times = points.map((point) => point.t);
  const line = (name: string, figure: keyof ElementPoint, series: number) => ({
    name,
    series,
    values: points.map((point) => point[figure]),
  });
  return [
    loadChart("throughput", points),
    { ...loadChart("lag", points), height: 120 },
    loadChart("latency", points),
    {
      title: "Batch",
      unit: "ms",
      times,
      lines: [line("p50", "batch_ms_p50", 3), line("p95", "batch_ms_p95", 5)],
      height: 120,
    },
    {
      title: "State",
      unit: "bytes",
      times,
      scale: "bytes",
      lines: [line("state", "state_bytes", 7)],
      height: 120,
    },
  ];
}

const WIDE_HEIGHT = 220;

/** `wide`: as cards side by side, for a page. */
export function ElementCharts({
  pipeline,
  element,
  wide = false,
}: {
  pipeline: string;
  element: LiveElement;
  wide?: boolean;
}) {
  const { points, error, reload, loading } = usePoints(pipeline, element);
  const marks = useMarks(pipeline, element);
  const range = useTimeRange();
  const charts = useMemo(() => {
    const span = spanOf(range, Date.now());
    const shown = {
      marks: marksIn(marks, span),
      of: `${pipeline} ${element.id}`,
      span_ms: range.minutes * 60_000,
      ...(wide ? { height: WIDE_HEIGHT } : {}),
    };
    return chartsOf(within(points, span)).map((chart) => ({ ...chart, ...shown }));
  }, [points, range, marks, pipeline, element.id, wide]);
  // not before the history has arrived: figures of a few seconds would look like all there are
  if (loading) return <Skeleton lines={4} height={110} />;
  return (
    <div className="stack">
      <div className="stack stack--tight">
        <RangeBar />
        <MarkLegend marks={charts[0]?.marks ?? []} />
      </div>
      {error && points.length === 0 ? <Problem error={error} onRetry={reload} /> : null}
      {wide ? <ChartCards charts={charts} /> : charts.map((chart) => <Chart key={chart.title} {...chart} />)}
    </div>
  );
}
