/** An element as a page of its own: what the drawer shows, with charts and records in full width. */
import { useEffect, useState } from "react";
import { Box, Workflow } from "lucide-react";
import { livePage, useParam } from "../../shared/address";
import { get, post } from "../../shared/api";
import { live, useElement, useLive, useTitle } from "../../shared/live";
import { mount } from "../../shared/mount";
import { page } from "../../shared/page";
import type { LiveElement, Operator, Pipeline, PipelineVersion, Validation } from "../../shared/types";
import { Problem, Skeleton, StatusMark, useLoaded } from "../../shared/ui/parts";
import { Tabs } from "../../shared/ui/tabs";
import { Frame, Section } from "../../shared/ui/frame";
import { displayName } from "../../shared/document";
import { open, useEditor } from "../store";
import { ElementCharts } from "./charts";
import { ElementCommands } from "./commands";
import {
  Actions,
  ActiveHandover,
  detailTabs,
  ElementErrorNote,
  Figures,
  useDialogs,
  useView,
  type Shown,
} from "./drawer";
import { ForEngineers } from "./engineers";
import { Percentiles } from "./percentiles";
import { TargetCostCard } from "./target-cost";
import { UserPlace } from "./user-place";
import { View } from "./view";
import { WhyHere } from "./why-here";

/** Loads the running version, else the draft, into the store that the parts of the live view read. */
async function load(name: string, signal: AbortSignal): Promise<true> {
  const path = `/pipelines/${encodeURIComponent(name)}`;
  const [pipeline, operators] = await Promise.all([
    get<Pipeline>(path, signal),
    get<Operator[]>("/operators", signal),
  ]);
  const number = pipeline.deployed_version;
  const runs = number === null ? null : await get<PipelineVersion>(`${path}/versions/${number}`, signal);
  const document = runs?.document ?? pipeline.document;
  open(pipeline, operators, document);
  // for the units of its columns; nothing waits for them
  void post<Validation>(`${path}/validate`, { document }).then(
    ({ schemas }) => useEditor.setState({ schemas }),
    () => undefined,
  );
  return true;
}

const name = page.pipeline ?? "";
const id = page.element ?? "";

function ElementPage() {
  const version = useLive((state) => state.pipelines.find((each) => each.name === name)?.deployed_version);
  const {
    data: ready,
    error,
    reload,
  } = useLoaded(`pipeline ${name} ${version}`, (signal) => load(name, signal));
  const [seen, setSeen] = useState(false);
  const element = useElement(name, id);
  const known = useLive((state) => name in state.elements);
  const title = useTitle(name);
  useEffect(() => live.watchPipeline(name), []);
  // the view stays while a new version is loaded
  if (ready && !seen) setSeen(true);
  const crumbs: [string, string][] = [
    ["Pipelines", "/pipelines/"],
    [title, livePage(name, id)],
  ];
  if (element && seen) return <Loaded crumbs={crumbs} element={element} />;
  return (
    <Frame crumbs={crumbs} title={id}>
      {error && !seen ? (
        <Problem error={error} onRetry={reload} />
      ) : known && seen ? (
        <Gone />
      ) : (
        <Skeleton lines={5} height={60} />
      )}
    </Frame>
  );
}

function Gone() {
  const title = useTitle(name);
  return (
    <div className="card empty">
      <Box aria-hidden="true" />
      <h2>
        {id} is no longer an element of {title}
      </h2>
      <p>It was removed from the pipeline. The data that it wrote is kept.</p>
      <a className="button" href={livePage(name)}>
        Open {title}
      </a>
    </div>
  );
}

function Loaded({ crumbs, element }: { crumbs: [string, string][]; element: LiveElement }) {
  const operator = useEditor((state) => state.operators.get(element.type));
  const { ask, dialogs } = useDialogs(name, element);
  const shown = { pipeline: name, element, operator, ask };
  const isView = element.status === "view";
  const runs = !isView && element.status !== "draft";
  return (
    <Frame
      crumbs={crumbs}
      title={displayName(element, operator)}
      state={<StatusMark status={element.status} pill />}
      actions={
        <a className="button" href={livePage(name, id)}>
          <Workflow aria-hidden="true" />
          Show on the canvas
        </a>
      }
    >
      <div className="row row--between row--wrap">
        <p className="muted">
          {operator?.title ?? element.type}
          {element.node && (
            <>
              {" on "}
              <a href={`/nodes/${encodeURIComponent(element.node)}`}>{element.node}</a>
            </>
          )}
        </p>
        {runs && <Actions {...shown} />}
      </div>
      {element.status === "draft" ? (
        <div className="card empty">
          <Box aria-hidden="true" />
          <h2>It does not run yet</h2>
          <p>Deploy the pipeline to see its figures and records here.</p>
        </div>
      ) : (
        <>
          <ElementErrorNote pipeline={name} element={element} />
          {!isView && <WhyHere pipeline={name} element={element} />}
          {!isView && (
            <UserPlace pipeline={name} element={element} isSource={operator?.category === "sources"} />
          )}
          <ActiveHandover pipeline={name} element={element} />
          {isView ? <ViewSection element={element} /> : <Running element={element} />}
          <Details {...shown} />
        </>
      )}
      {dialogs}
      <ElementCommands pipeline={name} element={element} />
    </Frame>
  );
}

function Running({ element }: { element: LiveElement }) {
  return (
    <>
      <div className="card element-figures">
        <div className="stack">
          <Figures pipeline={name} element={element} />
          <Percentiles element={element} />
          <ForEngineers pipeline={name} element={element} />
        </div>
        <TargetCostCard element={element} />
      </div>
      <Section title="Charts">
        <ElementCharts pipeline={name} element={element} wide />
      </Section>
    </>
  );
}

const VIEW_HEIGHT = 480;

function ViewSection({ element }: { element: LiveElement }) {
  return (
    <Section title="View">
      <div className="card card__body">
        <View {...useView(name, element)} height={VIEW_HEIGHT} />
      </div>
    </Section>
  );
}

function Details(shown: Shown) {
  const { source } = useView(name, shown.element);
  const tabs = detailTabs(shown, source);
  const [chosen, choose] = useParam("tab");
  const value = tabs.some((tab) => tab.id === chosen) ? chosen : (tabs[0]?.id ?? "");
  if (tabs.length === 0) return null;
  return (
    <div className="card">
      <Tabs label="Details" value={value} onChange={choose} tabs={tabs} />
    </div>
  );
}

mount(<ElementPage />);
