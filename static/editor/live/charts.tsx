import { useEffect, useMemo, useState } from "react";
import { elementPath, get, listOf } from "../../shared/api";
import { instant } from "../../shared/format";
import { useLive } from "../../shared/live";
import { pointOf, withGaps } from "../../shared/points";
import type { ElementPoint, LiveElement } from "../../shared/types";
import { Chart } from "../../shared/ui/chart";
import { Problem, Skeleton, useLoaded } from "../../shared/ui/parts";
import { remember } from "../store";

const RANGES: readonly [number, string][] = [
  [5, "5 min"],
  [15, "15 min"],
  [60, "1 h"],
];

export function useRange(): [number, (minutes: number) => void] {
  const given = Number(new URL(window.location.href).searchParams.get("range"));
  const [minutes, setMinutes] = useState(RANGES.some(([each]) => each === given) ? given : 5);
  return [
    minutes,
    (next) => {
      setMinutes(next);
      remember({ range: next === 5 ? null : String(next) });
    },
  ];
}

export function RangeChoice({ minutes, onChange }: { minutes: number; onChange: (minutes: number) => void }) {
  return (
    <div className="segmented" role="group" aria-label="Time range">
      {RANGES.map(([value, title]) => (
        <button key={value} type="button" aria-pressed={value === minutes} onClick={() => onChange(value)}>
          {title}
        </button>
      ))}
    </div>
  );
}

/** History from the server, and what the live connection brings after it. */
function usePoints(pipeline: string, element: LiveElement) {
  const { data, error, reload } = useLoaded(
    `history ${pipeline} ${element.id}`,
    (signal) => get<unknown>(`${elementPath(pipeline, element.id)}/history`, signal),
    60_000,
  );
  const heard = useLive((state) => state.heard);
  const [fresh, setFresh] = useState<ElementPoint[]>([]);
  useEffect(() => {
    if (element.status === "deploying") return;
    const point = pointOf(element, Date.now());
    setFresh((old) => {
      const last = old.at(-1);
      return last && Date.now() - (instant(last.t) ?? 0) < 1000 ? old : [...old.slice(-1800), point];
    });
    // a point for each message, whether the figures changed or not
  }, [heard, element]);
  const points = useMemo(() => {
    const history = listOf<ElementPoint>(data);
    const until = instant(history.at(-1)?.t ?? 0) ?? 0;
    return withGaps<ElementPoint>([
      ...history,
      ...fresh.filter((point) => (instant(point.t) ?? 0) > until + 500),
    ]);
  }, [data, fresh]);
  return { points, error, reload, loading: data === undefined && !error };
}

export function ElementCharts({ pipeline, element }: { pipeline: string; element: LiveElement }) {
  const { points, error, reload, loading } = usePoints(pipeline, element);
  const [minutes, setMinutes] = useRange();
  const shown = useMemo(
    () => points.filter((point) => (instant(point.t) ?? 0) > Date.now() - minutes * 60_000),
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
