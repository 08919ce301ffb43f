import { useMemo } from "react";
import { leavingWords } from "../shared/draining";
import { capitalised, percent, plural } from "../shared/format";
import { useLive } from "../shared/live";
import { careOf, type Care } from "../shared/silence";
import { alertsNow, loadNow, nodeStatus, NOT_HEARD } from "../shared/status";
import type { ClusterNode, NodeLoad } from "../shared/types";
import { Ago, Meter, StatusMark } from "../shared/ui/parts";

export function NodeMark({ node, pill }: { node: ClusterNode; pill?: boolean }) {
  const status = nodeStatus(node);
  const far = node.drain && status !== "leaving" ? `, ${node.drain.moved} of ${node.drain.total}` : "";
  return <StatusMark status={status} word={`${status}${far}`} pill={pill} />;
}

function Load({ label, ratio, busy }: { label: string; ratio: number | null | undefined; busy?: boolean }) {
  return (
    <span className="tile__load">
      <span className="row row--between">
        {label}
        <b className="num">{percent(ratio)}</b>
      </span>
      <Meter ratio={ratio} label={label} busy={busy} />
    </span>
  );
}

function Loads({ load }: { load: Partial<NodeLoad> }) {
  return (
    <div className="tile__loads">
      <Load label="CPU" ratio={load.cpu_ratio} busy />
      <Load label="Memory" ratio={load.memory_ratio} />
      <Load label="Disk" ratio={load.disk_ratio} />
    </div>
  );
}

/** What is being done about the elements of a silent node; nothing while the node is up. */
export function useCare(node: ClusterNode): Care[] {
  const elements = useLive((state) => state.elements);
  const handovers = useLive((state) => state.handovers);
  return useMemo(() => (node.up ? [] : careOf(node, elements, handovers)), [node, elements, handovers]);
}

/** A silent node has no load to show. Its elements matter more. */
function Silence({ node, care }: { node: ClusterNode; care: Care[] }) {
  return (
    <div className="stack stack--tight">
      <span className="small muted">
        Last heard <Ago at={node.last_seen_at} />
      </span>
      {care.length > 0 && <CareLines care={care} />}
      {care.length === 0 && (
        <span className="small">{node.heard ? "It owned no elements." : `${NOT_HEARD}.`}</span>
      )}
    </div>
  );
}

const LINES_MAX = 3;

function CareLines({ care }: { care: Care[] }) {
  return (
    <ul className="care">
      {care.slice(0, LINES_MAX).map((line) => (
        <li key={`${line.pipeline}/${line.element}`}>
          <StatusMark status={line.tone} word={line.text} />
        </li>
      ))}
      {care.length > LINES_MAX && <li className="muted">and {care.length - LINES_MAX} more</li>}
    </ul>
  );
}

/** The first sentence of each: the node's page has the whole. */
function AlertLines({ alerts }: { alerts: ClusterNode["alerts"] }) {
  return (
    <ul className="care">
      {alerts.slice(0, LINES_MAX).map(({ message }) => (
        <li key={message} title={message}>
          <StatusMark status="warning" word={message.split(". ")[0]} />
        </li>
      ))}
      {alerts.length > LINES_MAX && <li className="muted">and {alerts.length - LINES_MAX} more</li>}
    </ul>
  );
}

export function NodeTile({ node }: { node: ClusterNode }) {
  const of = (wanted: string) => node.elements.filter(({ role }) => role === wanted).length;
  const standbys = of("standby");
  const care = useCare(node);
  const load = loadNow(node);
  const status = nodeStatus(node);
  const alerts = alertsNow(node);
  return (
    <a className="card tile" href={`/nodes/${encodeURIComponent(node.name)}`}>
      <span className="row row--between">
        <span className="tile__name ellipsis">{node.name}</span>
        <NodeMark node={node} />
      </span>
      {node.up ? <Loads load={load} /> : <Silence node={node} care={care} />}
      {status === "leaving" && <span className="small">{capitalised(leavingWords(node))}</span>}
      {alerts.length > 0 && <AlertLines alerts={alerts} />}
      <span className="muted small">
        {node.site && `${node.site} · `}
        {plural(of("owner"), "element")}
        {standbys > 0 && `, ${plural(standbys, "standby", "standbys")}`} · {plural(node.cores, "core")}
        {load.battery_ratio != null && ` · battery ${percent(load.battery_ratio)}`}
      </span>
    </a>
  );
}
