import { Workflow } from "lucide-react";
import { takeNew, useParam } from "../shared/address";
import { get } from "../shared/api";
import { count, rate } from "../shared/format";
import { useLive } from "../shared/live";
import { mount } from "../shared/mount";
import { waiting, written } from "../shared/points";
import type { PipelineItem } from "../shared/types";
import { Ago, Problem, Skeleton, StatusMark, useLoaded } from "../shared/ui/parts";
import { Frame } from "../shared/ui/frame";
import { LeftDrafts } from "./left-drafts";
import { NewPipeline } from "./new-pipeline";
import "./monitor.css";

const ASKED = takeNew();

function PipelinesPage() {
  const { data, error, reload } = useLoaded("pipelines", (signal) =>
    get<PipelineItem[]>("/pipelines", signal),
  );
  const live = useLive();
  const pipelines = live.loaded ? live.pipelines : data;
  const [words, setWords] = useParam("q");
  return (
    <Frame title="Pipelines" actions={<NewPipeline asked={ASKED} />}>
      {!pipelines &&
        (error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={5} height={40} />)}
      {pipelines && <LeftDrafts there={new Set(pipelines.map(({ name }) => name))} />}
      {pipelines?.length === 0 && (
        <div className="card empty">
          <Workflow aria-hidden="true" />
          <h2>Draw the first pipeline</h2>
          <p>
            Start from a template that runs at once and change it as you like, or start from an empty canvas.
          </p>
          <div className="row row--wrap">
            <a className="button" href="/templates/">
              See the templates
            </a>
            <NewPipeline />
          </div>
        </div>
      )}
      {pipelines && pipelines.length > 0 && (
        <>
          <div className="filters">
            <input
              className="input"
              type="search"
              placeholder="Filter by name"
              aria-label="Filter by name"
              value={words}
              onChange={(event) => setWords(event.target.value)}
            />
          </div>
          <Table
            pipelines={pipelines.filter((pipeline) =>
              `${pipeline.title} ${pipeline.name}`.toLowerCase().includes(words.trim().toLowerCase()),
            )}
          />
        </>
      )}
    </Frame>
  );
}

function Table({ pipelines }: { pipelines: PipelineItem[] }) {
  return (
    <div className="card table-wrap">
      <table className="table table--rows">
        <thead>
          <tr>
            <th>Name</th>
            <th>Status</th>
            <th className="num roomy-only">Elements</th>
            <th className="num">Out, rows/s</th>
            <th className="num roomy-only">Lag, rows</th>
            <th>Deployed</th>
            <th className="roomy-only">Draft changed</th>
          </tr>
        </thead>
        <tbody>
          {pipelines.map((pipeline) => (
            <Row key={pipeline.name} pipeline={pipeline} />
          ))}
          {pipelines.length === 0 && (
            <tr>
              <td colSpan={7} className="muted">
                No name matches the filter.
              </td>
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}

function Row({ pipeline }: { pipeline: PipelineItem }) {
  const elements = useLive((state) => state.elements[pipeline.name]);
  const deployed = pipeline.deployed_version !== null;
  const waits = deployed && elements ? waiting(elements) : null;
  return (
    <tr>
      <td>
        <a
          className="tile__name"
          href={`/pipelines/${encodeURIComponent(pipeline.name)}${deployed ? "?mode=live" : ""}`}
        >
          {pipeline.title}
        </a>
        {pipeline.title !== pipeline.name && <span className="muted small"> {pipeline.name}</span>}
      </td>
      <td>
        <StatusMark status={pipeline.status} />
      </td>
      <td className="num roomy-only">{pipeline.elements ?? elements?.length ?? "–"}</td>
      <td className="num">{deployed && elements ? rate(written(elements)) : "–"}</td>
      <td className="num roomy-only" title={waits?.why}>
        {waits ? count(waits.rows) : "–"}
        {waits?.why && <span className="visually-hidden"> not known: {waits.why}</span>}
      </td>
      <td>
        {deployed ? `version ${pipeline.deployed_version}` : <span className="muted">no</span>}{" "}
        {deployed && pipeline.differs && <span className="badge badge--warning">draft differs</span>}
      </td>
      <td className="muted roomy-only">
        <Ago at={pipeline.updated_at} />
        {pipeline.updated_by ? ` by ${pipeline.updated_by}` : ""}
      </td>
    </tr>
  );
}

mount(<PipelinesPage />);
