import { useState } from "react";
import { Download, Workflow } from "lucide-react";
import { takeFile, takeNew, useParam } from "../shared/address";
import { get } from "../shared/api";
import { MissingFiles } from "../shared/files/missing-files";
import { ImportHost } from "../shared/files/import-dialog";
import { count, plural, rate } from "../shared/format";
import { useLive } from "../shared/live";
import { mount } from "../shared/mount";
import { waiting, written } from "../shared/points";
import type { PipelineItem } from "../shared/types";
import { Ago, Problem, Skeleton, StatusMark, useLoaded } from "../shared/ui/parts";
import { Frame } from "../shared/ui/frame";
import { ImportPipelines } from "./import-pipelines";
import { LeftDrafts } from "./left-drafts";
import { NewPipeline } from "./new-pipeline";
import "./monitor.css";

const ASKED = takeNew();
const ASKED_FILE = takeFile();

function PipelinesPage() {
  const { data, error, reload } = useLoaded("pipelines", (signal) =>
    get<PipelineItem[]>("/pipelines", signal),
  );
  const live = useLive();
  const pipelines = live.loaded ? live.pipelines : data;
  const [words, setWords] = useParam("q");
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const shown = (pipelines ?? []).filter((pipeline) =>
    `${pipeline.title} ${pipeline.name}`.toLowerCase().includes(words.trim().toLowerCase()),
  );
  // what the filter hides or somebody deleted is not exported unseen
  const names = shown.map(({ name }) => name).filter((name) => chosen.includes(name));
  return (
    <Frame
      title="Pipelines"
      actions={
        <>
          <ImportPipelines onDone={reload} />
          <NewPipeline asked={ASKED} file={ASKED_FILE} />
        </>
      }
    >
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
            <ExportChosen names={names} />
          </div>
          <Table pipelines={shown} chosen={names} choose={setChosen} />
        </>
      )}
      <MissingFiles />
      <ImportHost />
    </Frame>
  );
}

/** As many as the server writes into one file. */
const EXPORTED_MAX = 100;

function ExportChosen({ names }: { names: readonly string[] }) {
  if (names.length === 0) return null;
  if (names.length > EXPORTED_MAX)
    return <p className="muted small">One file has at most {EXPORTED_MAX} pipelines. Choose fewer.</p>;
  const asked = new URLSearchParams(names.map((name) => ["pipeline", name]));
  return (
    <a className="button" href={`/api/v1/documents?${asked.toString()}`} download="pipelines.yaml">
      <Download aria-hidden="true" />
      {`Export ${plural(names.length, "pipeline")} as YAML`}
    </a>
  );
}

function Table({
  pipelines,
  chosen,
  choose,
}: {
  pipelines: PipelineItem[];
  chosen: readonly string[];
  choose: (names: readonly string[]) => void;
}) {
  const all = pipelines.length > 0 && chosen.length === pipelines.length;
  return (
    <div className="card table-wrap">
      <table className="table table--rows">
        <thead>
          <tr>
            <th className="choose-cell">
              <input
                type="checkbox"
                aria-label="Choose all"
                checked={all}
                disabled={pipelines.length === 0}
                ref={(box) => {
                  if (box) box.indeterminate = chosen.length > 0 && !all;
                }}
                onChange={() => choose(all ? [] : pipelines.map(({ name }) => name))}
              />
            </th>
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
            <Row
              key={pipeline.name}
              pipeline={pipeline}
              chosen={chosen.includes(pipeline.name)}
              choose={(on) =>
                choose(on ? [...chosen, pipeline.name] : chosen.filter((name) => name !== pipeline.name))
              }
            />
          ))}
          {pipelines.length === 0 && (
            <tr>
              <td colSpan={8} className="muted">
                No name matches the filter.
              </td>
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}

function Row({
  pipeline,
  chosen,
  choose,
}: {
  pipeline: PipelineItem;
  chosen: boolean;
  choose: (on: boolean) => void;
}) {
  const elements = useLive((state) => state.elements[pipeline.name]);
  const deployed = pipeline.deployed_version !== null;
  const waits = deployed && elements ? waiting(elements) : null;
  return (
    <tr>
      <td className="choose-cell">
        <input
          type="checkbox"
          aria-label={`Choose ${pipeline.title}`}
          checked={chosen}
          onChange={(event) => choose(event.target.checked)}
        />
      </td>
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
