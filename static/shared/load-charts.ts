/** The charts of an element's and of a node's load, on their pages and on walls. Pure. */
import type { LoadPoint, LoadTile } from "./types";
import type { ChartData } from "./ui/chart-plot";

export type LoadFigure = LoadTile["figure"];

interface Load {
  title: string;
  unit: string;
  scale?: ChartData["scale"];
  /** name, figure of a point, and colour */
  lines: [string, keyof LoadPoint, number][];
}

export const LOADS: Readonly<Record<LoadFigure, Load>> = {
  throughput: {
    title: "Throughput",
    unit: "rows/s",
    lines: [
      ["in", "rows_in_per_s", 1],
      ["out", "rows_out_per_s", 2],
    ],
  },
  lag: { title: "Lag", unit: "rows", lines: [["lag", "lag_rows", 4]] },
  latency: {
    title: "Latency",
    unit: "ms",
    lines: [
      ["p50", "latency_ms_p50", 1],
      ["p95", "latency_ms_p95", 6],
      ["p99", "latency_ms_p99", 2],
    ],
  },
  cpu: { title: "CPU", unit: "of all cores", scale: "ratio", lines: [["cpu", "cpu_ratio", 1]] },
  memory: {
    title: "Memory",
    unit: "of the machine's memory",
    scale: "ratio",
    lines: [["memory", "memory_ratio", 3]],
  },
};

export const ofNode = (figure: LoadFigure): boolean => figure === "cpu" || figure === "memory";

export function loadChart(figure: LoadFigure, points: readonly LoadPoint[]): ChartData {
  const { lines, ...head } = LOADS[figure];
  return {
    ...head,
    times: points.map(({ t }) => t),
    lines: lines.map(([name, key, series]) => ({
      name,
      series,
      values: points.map((point) => point[key] ?? null),
    })),
  };
}
