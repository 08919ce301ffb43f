import { Server, Workflow } from "lucide-react";
import { get } from "../shared/api";
import { count, plural, rate } from "../shared/format";
import { useLive } from "../shared/live";
import { mount } from "../shared/mount";
import { total } from "../shared/points";
import type { ClusterNode, LogEvent, PipelineItem } from "../shared/types";
import { Figure, Problem, Skeleton, StatusMark, useLoaded } from "../shared/ui/parts";
import { Feed } from "./feed";
import { Frame, Section } from "./frame";
import { NodeTile } from "./node-tile";
import { NewPipeline } from "./new-pipeline";

interface Overview {
  pipelines: PipelineItem[];
  nodes: ClusterNode[];
  /** what is the matter now */
  attention: LogEvent[];
}

function OverviewPage() {
  const { data, error, reload } = useLoaded(
    "overview",
    (signal) => get<Overview>("/overview", signal),
    10_000,
  );
  const live = useLive();
  const pipelines = live.loaded ? live.pipelines : data?.pipelines;
  const nodes = live.loaded ? live.nodes : data?.nodes;
  if (!pipelines || !nodes) {
    return (
      <Frame title="Overview">
        {error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={6} height={48} />}
      </Frame>
    );
  }
  const attention = data?.attention ?? [];
  return (
    <Frame title="Overview" actions={<NewPipeline />}>
      <Summary pipelines={pipelines} nodes={nodes} />
      {attention.length > 0 && (
        <Section title="Needs attention" aside={<a href="/events/">All events</a>}>
          <div className="card">
            <Feed events={attention} />
          </div>
        </Section>
      )}
      <Pipelines pipelines={pipelines} />
      <Nodes nodes={nodes} />
      <Section title="Latest">
        <div className="card">
          {live.events.length ? (
            <Feed events={live.events} max={8} />
          ) : (
            <p className="card__body muted">Nothing has happened yet.</p>
          )}
        </div>
      </Section>
    </Frame>
  );
}

function Pipelines({ pipelines }: { pipelines: PipelineItem[] }) {
  return (
    <Section title="Pipelines" aside={<a href="/pipelines/">All pipelines</a>}>
      {pipelines.length ? (
        <div className="grid">
          {pipelines.map((pipeline) => (
            <PipelineTile key={pipeline.name} pipeline={pipeline} />
          ))}
        </div>
      ) : (
        <div className="card empty">
          <Workflow aria-hidden="true" />
          <h3>No pipelines yet</h3>
          <p>
            A pipeline reads data, works on it and writes it, over as many machines as you have. Start from a
            template or from nothing.
          </p>
          <NewPipeline />
        </div>
      )}
    </Section>
  );
}

function Nodes({ nodes }: { nodes: ClusterNode[] }) {
  return (
    <Section title="Nodes" aside={<a href="/nodes/">All nodes</a>}>
      {nodes.length ? (
        <div className="grid">
          {nodes.map((node) => (
            <NodeTile key={node.name} node={node} />
          ))}
        </div>
      ) : (
        <div className="card empty">
          <Server aria-hidden="true" />
          <h3>No nodes yet</h3>
          <p>
            A node is a machine that runs elements. Add the first under Nodes: one command on the machine is
            all.
          </p>
          <a className="button" href="/nodes/">
            Add a machine
          </a>
        </div>
      )}
    </Section>
  );
}

function Summary({ pipelines, nodes }: { pipelines: PipelineItem[]; nodes: ClusterNode[] }) {
  const elements = useLive((state) => state.elements);
  const all = Object.values(elements).flat();
  const up = nodes.filter((node) => node.up).length;
  const running = pipelines.filter((pipeline) => pipeline.status === "running").length;
  const heard = nodes.every((node) => node.heard);
  return (
    <div className="card summary">
      <Figure label="Pipelines running" value={heard ? running : "–"} unit={`of ${pipelines.length}`} />
      <Figure
        label="Nodes up"
        value={heard ? up : "–"}
        unit={`of ${nodes.length}`}
        tone={heard && up < nodes.length ? "failed" : undefined}
      />
      <Figure label="Rows written" value={rate(total(all, "rows_out_per_s"))} unit="rows/s" />
      <Figure label="Waiting" value={count(total(all, "lag_rows"))} unit="rows" />
    </div>
  );
}

function PipelineTile({ pipeline }: { pipeline: PipelineItem }) {
  const elements = useLive((state) => state.elements[pipeline.name]) ?? [];
  const nodes = new Set(elements.flatMap((element) => element.node ?? []));
  const deployed = pipeline.deployed_version !== null;
  return (
    <a
      className="card tile"
      href={`/pipelines/${encodeURIComponent(pipeline.name)}${deployed ? "?mode=live" : ""}`}
    >
      <span className="row row--between">
        <span className="tile__name ellipsis">{pipeline.name}</span>
        <StatusMark status={pipeline.status} />
      </span>
      <div className="tile__loads">
        <Figure label="Out" value={deployed ? rate(total(elements, "rows_out_per_s")) : "–"} unit="rows/s" />
        <Figure label="Lag" value={deployed ? count(total(elements, "lag_rows")) : "–"} unit="rows" />
        <Figure label="Nodes" value={nodes.size || "–"} />
      </div>
      <span className="muted small">
        {plural(pipeline.elements ?? elements.length, "element")}
        {deployed ? ` · version ${pipeline.deployed_version}` : " · not deployed"}
        {deployed && pipeline.differs ? " · draft differs" : ""}
      </span>
    </a>
  );
}

mount(<OverviewPage />);
