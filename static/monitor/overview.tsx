import { useEffect, useRef } from "react";
import { Server, Workflow } from "lucide-react";
import { get } from "../shared/api";
import { rate } from "../shared/format";
import { useLive } from "../shared/live";
import { mount } from "../shared/mount";
import { waiting, written } from "../shared/points";
import { isRunning, nodeStatus } from "../shared/status";
import type { ClusterNode, PipelineItem } from "../shared/types";
import { Figure, Problem, Skeleton, StatusMark, useLoaded, WaitingFigure } from "../shared/ui/parts";
import { Feed, type FeedLine } from "./feed";
import { Frame, Section } from "../shared/ui/frame";
import { NodeTile } from "./node-tile";
import { NewPipeline } from "./new-pipeline";
import { ordered, type Throughput } from "./overview-order";
import { DraftLine, RunningTile } from "./pipeline-tile";
import "./monitor.css";

interface Overview {
  pipelines: PipelineItem[];
  nodes: ClusterNode[];
  /** what needs attention now */
  attention: FeedLine[];
  /** by pipeline, of what is deployed */
  throughput: Record<string, Throughput>;
}

function OverviewPage() {
  const { data, error, reload } = useLoaded(
    "overview",
    (signal) => get<Overview>("/overview", signal),
    10_000,
  );
  const live = useLive();
  useReloadWhenStatesChange(reload);
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
  const { trouble, running, resting, drafts } = ordered(pipelines);
  return (
    <Frame title="Overview" actions={<NewPipeline />}>
      <Summary pipelines={pipelines} nodes={nodes} />
      <Section title="Needs attention" aside={<a href="/events/">All events</a>}>
        <Attention events={attention} trouble={trouble} throughput={data?.throughput} asked={!!data} />
      </Section>
      {pipelines.length > 0 ? (
        <Section title="Running" aside={<a href="/pipelines/">All pipelines</a>}>
          {running.length > 0 ? (
            <Tiles pipelines={running} throughput={data?.throughput} />
          ) : (
            <p className="muted">
              {trouble.length
                ? "Every pipeline that should run needs attention."
                : resting.length
                  ? "No pipeline runs now."
                  : "No pipeline runs. Open a draft and deploy it."}
            </p>
          )}
        </Section>
      ) : (
        <FirstPipeline />
      )}
      {resting.length > 0 && (
        <Section title="Deployed, not running">
          <Tiles pipelines={resting} throughput={data?.throughput} />
        </Section>
      )}
      {drafts.length > 0 && (
        <Section title="Drafts">
          <ul className="card drafts">
            {drafts.map((pipeline) => (
              <DraftLine key={pipeline.name} pipeline={pipeline} />
            ))}
          </ul>
        </Section>
      )}
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

/** What needs attention is asked for again as soon as a pipeline, a node or an alarm is in another state. */
function useReloadWhenStatesChange(reload: () => void) {
  const states = useLive(({ loaded, pipelines, nodes, alarms }) =>
    loaded
      ? [
          ...pipelines,
          ...nodes.map((node) => ({ ...node, status: nodeStatus(node) })),
          ...alarms.map(({ id, status }) => ({ name: String(id), status })),
        ]
          .map(stateOf)
          .join()
      : "",
  );
  const again = useRef(reload);
  again.current = reload;
  useEffect(() => {
    if (states) again.current();
  }, [states]);
}

const stateOf = ({ name, status }: { name: string; status: string }) => `${name} ${status}`;

/** Every problem in words, and the pipelines that have one. */
function Attention({
  events,
  trouble,
  throughput,
  asked,
}: {
  events: FeedLine[];
  trouble: PipelineItem[];
  throughput: Overview["throughput"] | undefined;
  asked: boolean;
}) {
  if (events.length === 0 && trouble.length === 0) {
    return (
      <p className="calm">
        {asked ? <StatusMark status="running" word="Nothing needs attention" /> : "Looking…"}
      </p>
    );
  }
  return (
    <>
      {events.length > 0 && (
        <div className="card">
          <Feed events={events} />
        </div>
      )}
      {trouble.length > 0 && <Tiles pipelines={trouble} throughput={throughput} />}
    </>
  );
}

function Tiles({
  pipelines,
  throughput,
}: {
  pipelines: PipelineItem[];
  throughput: Overview["throughput"] | undefined;
}) {
  return (
    <div className="grid">
      {pipelines.map((pipeline) => (
        <RunningTile key={pipeline.name} pipeline={pipeline} throughput={throughput?.[pipeline.name]} />
      ))}
    </div>
  );
}

function FirstPipeline() {
  return (
    <Section title="Pipelines">
      <div className="card empty">
        <Workflow aria-hidden="true" />
        <h3>No pipelines yet</h3>
        <p>
          A pipeline reads data, processes it and writes it, on as many machines as you have. Start from a
          template or from an empty canvas.
        </p>
        <div className="row row--wrap">
          <a className="button" href="/templates/">
            See the templates
          </a>
          <NewPipeline />
        </div>
      </div>
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
            A node is a machine that runs elements. Add the first one under Nodes: it takes one command on
            that machine.
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
  const running = pipelines.filter((pipeline) => isRunning(pipeline, elements[pipeline.name] ?? [])).length;
  const heard = nodes.every((node) => node.heard);
  return (
    <div className="card summary">
      <Figure label="Pipelines running" value={heard ? running : "–"} unit={`of ${pipelines.length}`} />
      <Figure
        label="Nodes running"
        value={heard ? up : "–"}
        unit={`of ${nodes.length}`}
        tone={heard && up < nodes.length ? "failed" : undefined}
      />
      <Figure label="Rows written" value={rate(written(all))} unit="rows/s" />
      <WaitingFigure label="Waiting" waits={waiting(...Object.values(elements))} />
    </div>
  );
}

mount(<OverviewPage />);
