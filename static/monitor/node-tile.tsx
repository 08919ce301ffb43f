import { percent, plural } from "../shared/format";
import type { ClusterNode } from "../shared/types";
import { Meter, StatusMark } from "../shared/ui/parts";

/** One word for a node's state. */
export function nodeStatus(node: ClusterNode): string {
  if (!node.up) return "silent";
  if (!node.ready) return "starting up";
  return node.cordoned ? "cordoned" : "up";
}

export function NodeMark({ node, pill }: { node: ClusterNode; pill?: boolean }) {
  const status = nodeStatus(node);
  return <StatusMark status={status} word={status} pill={pill} />;
}

function Load({ label, ratio }: { label: string; ratio: number | null | undefined }) {
  return (
    <span className="tile__load">
      <span className="row row--between">
        {label}
        <b className="num">{percent(ratio)}</b>
      </span>
      <Meter ratio={ratio} label={label} />
    </span>
  );
}

export function Loads({ node }: { node: ClusterNode }) {
  return (
    <div className="tile__loads">
      <Load label="CPU" ratio={node.load?.cpu_ratio} />
      <Load label="Memory" ratio={node.load?.memory_ratio} />
      <Load label="Disk" ratio={node.load?.disk_ratio} />
    </div>
  );
}

export function NodeTile({ node }: { node: ClusterNode }) {
  const owned = node.elements.filter((element) => element.role === "owner").length;
  return (
    <a className="card tile" href={`/nodes/${encodeURIComponent(node.name)}`}>
      <span className="row row--between">
        <span className="tile__name ellipsis">{node.name}</span>
        <NodeMark node={node} />
      </span>
      <Loads node={node} />
      <span className="muted small">
        {plural(owned, "element")} · {plural(node.cores, "core")}
        {node.load?.battery_ratio != null && ` · battery ${percent(node.load.battery_ratio)}`}
      </span>
    </a>
  );
}
