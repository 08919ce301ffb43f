import { Server } from "lucide-react";
import { get, listOf } from "../shared/api";
import { bytes, percent } from "../shared/format";
import { useLive } from "../shared/live";
import { mount } from "../shared/mount";
import type { ClusterNode, NodePoint } from "../shared/types";
import { Ago, Problem, Skeleton, Spark, useLoaded } from "../shared/ui/parts";
import { AddMachine } from "./add-machine";
import { Frame } from "./frame";
import { NodeMark } from "./node-tile";

function NodesPage() {
  const { data, error, reload } = useLoaded("nodes", (signal) => get<unknown>("/nodes", signal));
  const live = useLive();
  const nodes = live.loaded ? live.nodes : data === undefined ? undefined : listOf<ClusterNode>(data);
  return (
    <Frame title="Nodes" actions={<AddMachine />}>
      {!nodes && (error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={4} height={44} />)}
      {nodes?.length === 0 && (
        <div className="card empty">
          <Server aria-hidden="true" />
          <h2>Add the first machine</h2>
          <p>
            Any machine with Python and Java that reaches this one can run elements. You get one command to
            run on it.
          </p>
          <AddMachine />
        </div>
      )}
      {nodes && nodes.length > 0 && (
        <div className="card table-wrap">
          <table className="table table--rows">
            <thead>
              <tr>
                <th>Name</th>
                <th>State</th>
                <th>CPU, last 5 min</th>
                <th className="num">CPU</th>
                <th className="num">Memory</th>
                <th className="num">Disk free</th>
                <th>Runs</th>
                <th>Version</th>
                <th>Last heard</th>
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

const SPARK_POINTS = 150;

function Row({ node }: { node: ClusterNode }) {
  const { data } = useLoaded(
    `history ${node.name}`,
    (signal) => get<unknown>(`/nodes/${encodeURIComponent(node.name)}/history`, signal),
    10_000,
  );
  const values = listOf<NodePoint>(data)
    .slice(-SPARK_POINTS)
    .map((point) => point.cpu_ratio);
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
      </td>
      <td className="spark-cell">
        <Spark values={values} max={1} label={`CPU of ${node.name}`} />
      </td>
      <td className="num">{percent(node.load?.cpu_ratio)}</td>
      <td className="num" title={bytes(node.load?.memory_bytes)}>
        {percent(node.load?.memory_ratio)}
      </td>
      <td className="num">{bytes(node.load?.disk_free_bytes)}</td>
      <td title={owned.map((element) => `${element.pipeline} / ${element.element}`).join("\n")}>
        {owned.length ? (
          owned
            .map((element) => element.element)
            .slice(0, 3)
            .join(", ") + (owned.length > 3 ? ` and ${owned.length - 3} more` : "")
        ) : (
          <span className="muted">nothing</span>
        )}
      </td>
      <td className="muted">{node.version}</td>
      <td className="muted">
        <Ago at={node.last_seen_at} />
      </td>
    </tr>
  );
}

mount(<NodesPage />);
