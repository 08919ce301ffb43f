import { useMemo } from "react";
import { Ban, CircleCheck, LogOut, Server, Trash2 } from "lucide-react";
import { drain, removalRefusal, removeNode, setCordoned } from "../shared/actions";
import { livePage } from "../shared/address";
import { get } from "../shared/api";
import { drainWords, hosted, leavingWords } from "../shared/draining";
import { bytes, capitalised, exact, percent } from "../shared/format";
import { useLive } from "../shared/live";
import { useLivePoints } from "../shared/live-points";
import { nodeNow } from "../shared/live-reducer";
import { loadChart } from "../shared/load-charts";
import { marksIn } from "../shared/marks";
import { mount } from "../shared/mount";
import { page, roleReason } from "../shared/page";
import { loadPointOf } from "../shared/points";
import { drainRefusal, loadNow, NOT_HEARD } from "../shared/status";
import { spanOf, useTimeRange, within } from "../shared/time-range";
import type { ClusterNode, NodePoint } from "../shared/types";
import { ChartCards, type ChartData } from "../shared/ui/chart";
import { NodeLogLines } from "../shared/ui/node-log";
import { NodeAlerts } from "../shared/ui/node-alerts";
import { Ago, Figure, Problem, Skeleton, StatusMark, useLoaded, Warning } from "../shared/ui/parts";
import { MarkLegend, RangeBar } from "../shared/ui/range";
import { Feed } from "./feed";
import { Frame, Section } from "../shared/ui/frame";
import { IfItFails } from "./if-it-fails";
import { useNodeMarks } from "./marks";
import { NodeMark, useCare } from "./node-tile";
import { Site } from "./site";
import "./monitor.css";

function NodePage() {
  const name = page.node ?? "";
  const { data, error, reload } = useLoaded(`node ${name}`, (signal) =>
    get<ClusterNode>(`/nodes/${encodeURIComponent(name)}`, signal),
  );
  const node = useLive((live) => nodeNow(live, name, data));
  const crumbs: [string, string][] = [["Nodes", "/nodes/"]];
  if (node === null) {
    return (
      <Frame crumbs={crumbs} title={name}>
        <Removed name={name} />
      </Frame>
    );
  }
  if (!node) {
    return (
      <Frame crumbs={crumbs} title={name}>
        {error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={5} height={60} />}
      </Frame>
    );
  }
  return (
    <Frame
      crumbs={crumbs}
      title={name}
      state={<NodeMark node={node} pill />}
      actions={<Actions node={node} />}
    >
      {!node.up && <SilenceNote node={node} />}
      <NodeAlerts node={node} />
      {(node.draining || node.leaving_until) && <DrainNote node={node} />}
      {node.maintenance_until && (
        <p className="muted">
          A policy keeps it empty until {exact(node.maintenance_until)}: it takes no new elements until then.
          See <a href="/policies/">Policies</a>.
        </p>
      )}
      <Figures node={node} />
      <Charts node={node} />
      <Elements node={node} />
      <IfItFails node={node} />
      <NodeEvents name={name} />
      <Section title="Log">
        <NodeLogLines path={`/nodes/${encodeURIComponent(name)}/log`} about="anything" />
      </Section>
    </Frame>
  );
}

function Removed({ name }: { name: string }) {
  return (
    <div className="card empty">
      <Server aria-hidden="true" />
      <h2>{name} is no longer a node of this cluster</h2>
      <p>It was removed. No pipeline ran there, and the files on its disk are still there.</p>
      <a className="button" href="/nodes/">
        All nodes
      </a>
    </div>
  );
}

function SilenceNote({ node }: { node: ClusterNode }) {
  const care = useCare(node);
  return (
    <Warning>
      <div className="stack stack--tight">
        <span>
          {node.name} was last heard <Ago at={node.last_seen_at} />.{" "}
          {node.heard
            ? "If it still runs, its elements keep running there until they are restored on other nodes. From then on it can no longer write for them."
            : `${NOT_HEARD}. Its elements keep running.`}
        </span>
        {care.length > 0 && (
          <ul className="care">
            {care.map((line) => (
              <li key={`${line.pipeline}/${line.element}`}>
                <StatusMark status={line.tone} word={line.text} />
                <a
                  href={
                    line.handover
                      ? `/handovers/${encodeURIComponent(line.handover)}`
                      : livePage(line.pipeline, line.element)
                  }
                >
                  {line.handover ? "Details" : "Open it"}
                </a>
              </li>
            ))}
          </ul>
        )}
      </div>
    </Warning>
  );
}

function DrainNote({ node }: { node: ClusterNode }) {
  const elements = useLive((state) => state.elements);
  const moves = `The elements of ${node.name} move to other nodes, one group after another.`;
  const how = node.leaving_until
    ? `The node was stopped. ${moves} Then it ends, or earlier if its time runs out. When it is started again, it takes new elements.`
    : `${moves} Uncordon the node to stop this.`;
  const title = node.leaving_until ? `${node.name} is leaving` : `Drain of ${node.name}`;
  return (
    <section className="card card__body stack stack--tight" aria-label={title}>
      {node.leaving_until && <b>{capitalised(leavingWords(node))}</b>}
      {node.drain && (
        <div className="drain">
          <b role="status">{drainWords(node.drain, elements)}</b>
          <progress
            className="drain__bar"
            aria-label="Groups moved away"
            value={node.drain.moved}
            max={Math.max(1, node.drain.total)}
          />
        </div>
      )}
      <p className="muted small">{how}</p>
      {node.drain_blocked && (
        <Warning>
          <div className="stack stack--tight">
            <span>These elements cannot move now:</span>
            <span>{node.drain_blocked}</span>
          </div>
        </Warning>
      )}
    </section>
  );
}

function Actions({ node }: { node: ClusterNode }) {
  const locked = roleReason("operator");
  const refused = locked ?? drainRefusal(node);
  const kept = removalRefusal(node);
  return (
    <>
      <button
        className="button"
        disabled={!!locked}
        title={locked ?? (node.draining ? "Elements that have not moved yet stay here" : undefined)}
        onClick={() => void setCordoned(node, !node.cordoned)}
      >
        {node.cordoned ? <CircleCheck aria-hidden="true" /> : <Ban aria-hidden="true" />}
        {node.cordoned ? "Uncordon" : "Cordon"}
      </button>
      <button
        className="button"
        disabled={refused !== null}
        title={refused ?? (node.draining ? "Try the failed moves again" : "Move all elements to other nodes")}
        onClick={() => void drain(node)}
      >
        <LogOut aria-hidden="true" />
        {node.draining ? "Drain again" : "Drain"}
      </button>
      <button
        className="button"
        disabled={kept !== null}
        title={kept ?? "Take it out of the cluster"}
        onClick={() => void removeNode(node).then((removed) => removed && window.location.assign("/nodes/"))}
      >
        <Trash2 aria-hidden="true" />
        Remove node
      </button>
    </>
  );
}

function Figures({ node }: { node: ClusterNode }) {
  const load = loadNow(node);
  return (
    <div className="stack stack--tight">
      <div className="card summary">
        <Figure label="CPU" value={percent(load.cpu_ratio)} unit={`of ${node.cores} cores`} />
        <Figure
          label="Memory"
          value={percent(load.memory_ratio)}
          unit={load.memory_total_bytes == null ? "" : `of ${bytes(load.memory_total_bytes)}`}
          title="All processes of the machine"
        />
        <Figure label="Its own memory" value={bytes(load.memory_bytes)} title="The node's own processes" />
        <Figure label="Disk free" value={bytes(load.disk_free_bytes)} />
        {load.battery_ratio != null && (
          <Figure
            label="Battery"
            value={percent(load.battery_ratio)}
            unit={load.on_battery ? "discharging" : "on mains"}
          />
        )}
        <Figure label="Last heard" value={<Ago at={node.last_seen_at} />} />
      </div>
      <p className="muted small row row--wrap">
        <span>version {node.version}</span>
        <span className="mono">{node.url}</span>
        <Site node={node} />
      </p>
    </div>
  );
}

function Charts({ node }: { node: ClusterNode }) {
  const newest = useMemo(
    () => loadPointOf(node),
    // it is another object with each message, whether it reported or not
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [node.last_seen_at, node.up],
  );
  const { points } = useLivePoints(`/nodes/${encodeURIComponent(node.name)}`, newest);
  const marks = useNodeMarks(node);
  const range = useTimeRange();
  const charts = useMemo(() => {
    const span = spanOf(range, Date.now());
    const shown = { marks: marksIn(marks, span), of: node.name, span_ms: range.minutes * 60_000 };
    return chartsOf(within(points, span)).map((chart) => ({ ...chart, ...shown }));
  }, [points, range, marks, node.name]);
  return (
    <Section title="Load" aside={<RangeBar />}>
      <MarkLegend marks={charts[0]?.marks ?? []} />
      <ChartCards charts={charts} />
    </Section>
  );
}

function chartsOf(points: NodePoint[]): ChartData[] {
  const chart = (title: string, unit: string, figure: keyof NodePoint, series: number): ChartData => ({
    title,
    unit,
    times: points.map((point) => point.t),
    scale: "ratio",
    lines: [{ name: title.toLowerCase(), values: points.map((point) => point[figure]), series }],
  });
  const battery = points.some((point) => point.battery_ratio != null);
  return [
    loadChart("cpu", points),
    loadChart("memory", points),
    chart("Disk", "used", "disk_ratio", 7),
    ...(battery ? [chart("Battery", "charge", "battery_ratio", 2)] : []),
  ];
}

function Elements({ node }: { node: ClusterNode }) {
  const elements = useLive((state) => state.elements);
  const pipelines = useLive((state) => state.pipelines);
  const titles = new Map(pipelines.map(({ name, title }) => [name, title]));
  return (
    <Section title="Elements here">
      {node.elements.length === 0 ? (
        <p className="muted">
          Nothing runs here. Pin an element to this node in the editor, or migrate one to it.
        </p>
      ) : (
        <div className="card table-wrap">
          <table className="table table--rows">
            <thead>
              <tr>
                <th>Element</th>
                <th>Pipeline</th>
                <th>Role</th>
                <th>Status</th>
              </tr>
            </thead>
            <tbody>
              {node.elements.map(({ pipeline, element, role }) => {
                const state = elements[pipeline]?.find((each) => each.id === element);
                const here = hosted(role, state, node.name);
                return (
                  <tr key={`${pipeline}/${element}`}>
                    <td>
                      <a className="tile__name" href={livePage(pipeline, element)}>
                        {state?.title || element}
                      </a>
                    </td>
                    <td>{titles.get(pipeline) ?? pipeline}</td>
                    <td className="muted">{here.role}</td>
                    <td>{here.status ? <StatusMark status={here.status} word={here.word} /> : "–"}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}

function NodeEvents({ name }: { name: string }) {
  const events = useLive((state) => state.events);
  const own = events.filter((event) => event.node === name);
  if (own.length === 0) return null;
  return (
    <Section title="Events">
      <div className="card">
        <Feed events={own} max={8} />
      </div>
    </Section>
  );
}

mount(<NodePage />);
