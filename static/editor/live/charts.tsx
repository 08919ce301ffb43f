import { useMemo, useState } from "react";
import { remember } from "../../shared/address";
import { elementPath } from "../../shared/api";
import { useNode } from "../../shared/live";
import { useLivePoints } from "../../shared/live-points";
import { pointOf } from "../../shared/points";
import type { LiveElement } from "../../shared/types";
import { Chart } from "../../shared/ui/chart";
import { Problem, Skeleton } from "../../shared/ui/parts";
import { isRange, RangeChoice } from "../../shared/ui/range";

function useRange(): [number, (minutes: number) => void] {
  const given = Number(new URL(window.location.href).searchParams.get("range"));
  const [minutes, setMinutes] = useState(isRange(given) ? given : 5);
  return [
    minutes,
    (next) => {
      setMinutes(next);
      remember({ range: next === 5 ? null : String(next) });
    },
  ];
}

function usePoints(pipeline: string, element: LiveElement) {
  const node = useNode(element.node ?? "");
  const newest = useMemo(
    () => (element.status === "deploying" ? null : pointOf(element, node)),
    // the node is another object with each message; what its figures are from is its report
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [element, node?.last_seen_at],
  );
  return useLivePoints(elementPath(pipeline, element.id), newest);
}

export function ElementCharts({ pipeline, element }: { pipeline: string; element: LiveElement }) {
  const { points, error, reload, loading } = usePoints(pipeline, element);
  const [minutes, setMinutes] = useRange();
  const shown = useMemo(
    () => points.filter((point) => point.t > Date.now() - minutes * 60_000),
    [points, minutes],
  );
  const charts = useMemo(() => {
    const times = shown.map((point) => point.t);
    return [
      {
        title: "Throughput",
        unit: "rows/s",
        times,
        lines: [
          { name: "in", values: shown.map((p) => p.rows_in_per_s) },
          { name: "out", values: shown.map((p) => p.rows_out_per_s) },
        ],
      },
      {
        title: "Lag",
        unit: "rows",
        times,
        lines: [{ name: "lag", values: shown.map((p) => p.lag_rows), series: 4 }],
        height: 120,
      },
      {
        title: "Batch and latency, p50",
        unit: "ms",
        times,
        lines: [
          { name: "batch", values: shown.map((p) => p.batch_ms_p50), series: 3 },
          { name: "latency", values: shown.map((p) => p.latency_ms_p50), series: 5 },
        ],
        height: 140,
      },
      {
        title: "State",
        unit: "bytes",
        times,
        scale: "bytes" as const,
        lines: [{ name: "state", values: shown.map((p) => p.state_bytes), series: 7 }],
        height: 110,
      },
    ];
  }, [shown]);
  if (loading && points.length === 0) return <Skeleton lines={4} height={110} />;
  return (
    <div className="stack">
      <RangeChoice minutes={minutes} onChange={setMinutes} />
      {error && points.length === 0 ? <Problem error={error} onRetry={reload} /> : null}
      {charts.map((chart) => (
        <Chart key={chart.title} {...chart} span_ms={minutes * 60_000} />
      ))}
    </div>
  );
}
