import { useMemo } from "react";
import { Server } from "lucide-react";
import { takeNew } from "../shared/address";
import { get } from "../shared/api";
import { bytes, percent, plural } from "../shared/format";
import { useLive } from "../shared/live";
import { marksIn } from "../shared/marks";
import { mount } from "../shared/mount";
import { aligned } from "../shared/points";
import { alertsNow, loadNow } from "../shared/status";
import { spanOf, useTimeRange } from "../shared/time-range";
import type { ClusterNode, NodePoint } from "../shared/types";
import { Chart } from "../shared/ui/chart";
import { Ago, Problem, Skeleton, StatusMark, useLoaded } from "../shared/ui/parts";
import { MarkLegend, RangeBar } from "../shared/ui/range";
import { Spark } from "../shared/ui/spark";
import { AddMachine } from "./add-machine";
import { Frame } from "../shared/ui/frame";
import { useClusterMarks } from "./marks";
import { NodeMark } from "./node-tile";
import "./monitor.css";

const ASKED = takeNew();

function NodesPage() {
  const { data, error, reload } = useLoaded("nodes", (signal) => get<ClusterNode[]>("/nodes", signal));
  const live = useLive();
  const nodes = live.loaded ? live.nodes : data;
  return (
    <Frame title="Nodes" actions={<AddMachine asked={ASKED} />}>
      {!nodes && (error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={4} height={44} />)}
      {nodes?.length === 0 && (
        <div className="card empty">
          <Server aria-hidden="true" />
          <h2>Add the first machine</h2>
          <p>
            Any machine with Python and Java that can reach this one can run elements. You get one command to
            run on it.
          </p>
          <AddMachine />
        </div>
      )}
      {nodes && nodes.length > 0 && <LoadCharts nodes={nodes} />}
      {nodes && nodes.length > 0 && (
        <div className="card table-wrap">
          <table className="table table--rows">
            <thead>
              <tr>
                <th>Name</th>
                <th>State</th>
                <th className="roomy-only">CPU, last 5 min</th>
                <th className="num">CPU</th>
                <th className="num">Memory</th>
                <th className="num roomy-only">Disk free</th>
                <th>Runs</th>
                <th className="roomy-only">Version</th>
                <th className="roomy-only">Last heard</th>
              </tr>
            </thead>
            <tbody>
              {nodes.map((node) => (
                <Row key={node.name} node={node} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Frame>
  );
}

const historyOf = async (name: string, signal: AbortSignal): Promise<NodePoint[]> =>
  (await get<{ points: NodePoint[] }>(`/nodes/${encodeURIComponent(name)}/history`, signal)).points;

function LoadCharts({ nodes }: { nodes: ClusterNode[] }) {
  const names = nodes.map((node) => node.name);
  const { data } = useLoaded(
    `histories ${names.join(" ")}`,
    (signal) => Promise.all(names.map((name) => historyOf(name, signal))),
    5000,
  );
  const marks = useClusterMarks();
  const range = useTimeRange();
  const charts = useMemo(() => {
    const { from, to } = spanOf(range, Date.now());
    const shown = marksIn(marks, { from, to });
    const chart = (title: string, unit: string, figure: "cpu_ratio" | "memory_ratio") => {
      const { times, values } = aligned(data ?? [], figure, to, to - from);
      const lines = names.map((name, index) => ({ name, values: values[index] ?? [] }));
      return { title, unit, times, lines, marks: shown, scale: "ratio" as const };
    };
    return [
      chart("CPU", "of all cores", "cpu_ratio"),
      chart("Memory", "of the machine's memory", "memory_ratio"),
    ];
    // a new answer is what changes them, or another range; the names are part of its key
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [data, range, marks]);
  return (
    <div className="stack stack--tight">
      <RangeBar />
      <MarkLegend marks={charts[0]?.marks ?? []} />
      <div className="charts">
        {charts.map((chart) => (
          <div key={chart.title} className="card card__body">
            <Chart {...chart} of="nodes" span_ms={range.minutes * 60_000} />
          </div>
        ))}
      </div>
    </div>
  );
}

const SPARK_POINTS = 150;

function Row({ node }: { node: ClusterNode }) {
  const { data } = useLoaded(`history ${node.name}`, (signal) => historyOf(node.name, signal), 10_000);
  // the points of a silent node are old: if they were drawn up to the edge, they would look like the last
  // 5 min
  const points = node.up && data ? data.slice(-SPARK_POINTS) : [];
  const load = loadNow(node);
  const alerts = alertsNow(node);
  const owned = node.elements.filter((element) => element.role === "owner");
  return (
    <tr>
      <td>
        <a className="tile__name" href={`/nodes/${encodeURIComponent(node.name)}`}>
          {node.name}
        </a>
      </td>
      <td>
        <NodeMark node={node} />
        {alerts.length > 0 && (
          <div title={alerts.map((alert) => alert.message).join("\n")}>
            <StatusMark status="warning" word={plural(alerts.length, "alert")} />
          </div>
        )}
      </td>
      <td className="spark-cell roomy-only">
        <Spark
          values={points.map((point) => point.cpu_ratio)}
          max={1}
          label={`CPU of ${node.name}, last 5 min`}
        />
      </td>
      <td className="num">{percent(load.cpu_ratio)}</td>
      <td className="num" title={bytes(load.memory_bytes)}>
        {percent(load.memory_ratio)}
      </td>
      <td className="num roomy-only">{bytes(load.disk_free_bytes)}</td>
      <td title={owned.map((element) => `${element.pipeline} / ${element.title}`).join("\n")}>
        {owned.length ? (
          owned
            .map((element) => element.title)
            .slice(0, 3)
            .join(", ") + (owned.length > 3 ? ` and ${owned.length - 3} more` : "")
        ) : (
          <span className="muted">nothing</span>
        )}
      </td>
      <td className="muted roomy-only">{node.version}</td>
      <td className="muted roomy-only">
        <Ago at={node.last_seen_at} />
      </td>
    </tr>
  );
}

mount(<NodesPage />);
