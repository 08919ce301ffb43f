import { ago, capitalised, listed, plural, rate } from "../shared/format";
import { useElements } from "../shared/live";
import { enters, waiting } from "../shared/points";
import { nameOf, wordOf } from "../shared/status";
import type { LiveElement, PipelineItem } from "../shared/types";
import { Ago, Figure, StatusMark, WaitingFigure } from "../shared/ui/parts";
import { Spark } from "../shared/ui/spark";
import type { Throughput } from "./overview-order";
import "./pipeline-tile.css";

const pageOf = (pipeline: PipelineItem): string =>
  `/pipelines/${encodeURIComponent(pipeline.name)}${pipeline.deployed_version === null ? "" : "?mode=live"}`;

/** A deployed pipeline: what flows, now and in the last minutes, and whether it keeps up. */
export function RunningTile({
  pipeline,
  throughput,
}: {
  pipeline: PipelineItem;
  throughput: Throughput | undefined;
}) {
  const elements = useElements(pipeline.name);
  const nodes = new Set(elements.flatMap((element) => element.node ?? []));
  return (
    <a className="card tile" href={pageOf(pipeline)}>
      <span className="row row--between">
        <span className="tile__name ellipsis">{pipeline.title}</span>
        <StatusMark status={pipeline.status} />
      </span>
      <div className="tile__loads">
        <Figure
          label="Enters"
          value={throughput ? rate(enters(elements, throughput.sources)) : "–"}
          unit="rows/s"
        />
        <WaitingFigure label="Waits" waits={waiting(elements)} />
        <Figure label="Nodes" value={nodes.size || "–"} />
      </div>
      <Standing pipeline={pipeline} elements={elements} />
      {throughput && <ThroughputSpark name={pipeline.title} throughput={throughput} />}
      <span className="muted small">
        {plural(elements.length || (pipeline.elements ?? 0), "element")} · version {pipeline.deployed_version}
        {pipeline.differs && " · draft differs"}
      </span>
    </a>
  );
}

const TROUBLED = new Set<string>([
  "failed",
  "silent",
  "unheard",
  "lagging",
  "stalled",
  "starting",
  "restoring",
]);

/** What does not process as it should, and what is paused: for each state one line with its elements. */
export function standing(elements: LiveElement[]): string[] {
  const byStatus = new Map<string, LiveElement[]>();
  for (const element of elements.filter(({ status }) => TROUBLED.has(status) || status === "paused"))
    byStatus.set(element.status, [...(byStatus.get(element.status) ?? []), element]);
  return [...byStatus].map(
    ([status, found]) => `${capitalised(wordOf(status))}: ${listed(found.map(nameOf))}`,
  );
}

/** A pipeline of which all is paused says so itself. */
function Standing({ pipeline, elements }: { pipeline: PipelineItem; elements: LiveElement[] }) {
  const lines = pipeline.status === "paused" ? [] : standing(elements);
  return lines.map((line) => (
    <span key={line} className="small">
      {line}
    </span>
  ));
}

function ThroughputSpark({ name, throughput }: { name: string; throughput: Throughput }) {
  const { rows_per_s, step_ms } = throughput;
  const known = rows_per_s.filter((value) => value !== null);
  const minutes = Math.round((rows_per_s.length * step_ms) / 60_000);
  const most = known.length ? `at most ${rate(Math.max(...known))} rows/s` : "no figures";
  return (
    <span className="tile__spark">
      <Spark
        values={rows_per_s}
        label={`Rows that entered ${name} in the last ${plural(minutes, "minute")}: ${most}`}
      />
      <span className="muted small">last {minutes} min</span>
    </span>
  );
}

/** A pipeline that is only drawn. */
export function DraftLine({ pipeline }: { pipeline: PipelineItem }) {
  return (
    <li>
      <a className="draft" href={pageOf(pipeline)} title={`Changed ${ago(pipeline.updated_at)}`}>
        <span className="tile__name ellipsis">{pipeline.title}</span>
        <span className="muted small">{plural(pipeline.elements ?? 0, "element")}</span>
        <span className="spring" />
        <span className="muted small">
          <Ago at={pipeline.updated_at} prefix="changed " />
          {pipeline.updated_by ? ` by ${pipeline.updated_by}` : ""}
        </span>
      </a>
    </li>
  );
}
