import { useState, type ReactNode } from "react";
import { ArrowRightLeft, Download, Maximize2, Pause, Play, RotateCcw, Save } from "lucide-react";
import * as actions from "../../shared/actions";
import { elementPage } from "../../shared/address";
import { elementPath } from "../../shared/api";
import { useNow } from "../../shared/clock";
import { bytes, cores, count, exact, millis, plural, rate } from "../../shared/format";
import { missesTarget } from "../../shared/latency";
import { useElement, useLive, useRunsInside } from "../../shared/live";
import { roleReason } from "../../shared/page";
import { quietOf } from "../../shared/quiet";
import { perRow } from "../../shared/target-cost";
import type { LiveElement, Operator } from "../../shared/types";
import { ErrorCode } from "../../shared/ui/error-code";
import { HandoverCard } from "../../shared/ui/handover";
import { OperatorIcon } from "../../shared/ui/icons";
import { Ago, Figure, StatusMark, WaitingFigure } from "../../shared/ui/parts";
import { NodeLogLines } from "../../shared/ui/node-log";
import { Resizer } from "../../shared/ui/resizer";
import { Tabs, type Tab } from "../../shared/ui/tabs";
import { displayName, findElement, limitOf, parseReference, sourcesOf } from "../../shared/document";
import { selectedEdge, shown, useEditor } from "../store";
import { ActionButton } from "./action-button";
import { ElementCharts } from "./charts";
import { Checkpoints } from "./checkpoints";
import { ConnectorState } from "./connector";
import { ForEngineers } from "./engineers";
import { DeadLetters } from "./letters";
import { MigrateDialog } from "./migrate";
import { Percentiles } from "./percentiles";
import { QueuePanel } from "./queue";
import { Nothing, Records } from "./records";
import { PastHandovers, Replicas } from "./replicas";
import { RestoreDialog } from "./restore";
import { showTab, tabOf, useShownTab } from "./shown-tab";
import { KeptState } from "./state";
import { LiveSummary } from "./summary";
import { TargetCost } from "./target-cost";
import { UserPlace } from "./user-place";
import { View } from "./view";
import { WhyHere } from "./why-here";
import "./live.css";

export function LivePanel() {
  const selected = useEditor((state) => state.selected);
  const [id] = selected;
  const pipeline = useEditor((state) => state.name);
  const element = useElement(pipeline, selected.size === 1 ? (id ?? null) : null);
  const edge = useEditor(selectedEdge);
  return (
    <aside className="panel panel--inspector" aria-label="Live state">
      <Resizer name="live" label="Width of the live state" />
      {element ? (
        <Drawer key={element.id} pipeline={pipeline} element={element} />
      ) : edge ? (
        <QueuePanel key={edge.id} pipeline={pipeline} edge={edge} />
      ) : (
        <LiveSummary pipeline={pipeline} />
      )}
    </aside>
  );
}

type Asking = { kind: "migrate" } | { kind: "restore"; checkpoint: number | null };
type Ask = (what: Asking) => void;

export interface Shown {
  pipeline: string;
  element: LiveElement;
  operator: Operator | undefined;
  /** opens the dialog of an action */
  ask: Ask;
}

/** The dialogs of an element's actions: how to open them, and those that are open. */
export function useDialogs(pipeline: string, element: LiveElement): { ask: Ask; dialogs: ReactNode } {
  const [asking, setAsking] = useState<Asking | null>(null);
  const close = () => setAsking(null);
  const dialogs = (
    <>
      {asking?.kind === "migrate" && <MigrateDialog pipeline={pipeline} element={element} onClose={close} />}
      {asking?.kind === "restore" && (
        <RestoreDialog pipeline={pipeline} element={element} checkpoint={asking.checkpoint} onClose={close} />
      )}
    </>
  );
  return { ask: setAsking, dialogs };
}

function Drawer({ pipeline, element }: { pipeline: string; element: LiveElement }) {
  const { ask, dialogs } = useDialogs(pipeline, element);
  const operator = useEditor((state) => state.operators.get(element.type));
  return (
    <div className="inspector">
      <header className="inspector__head">
        <span className="op-icon" data-category={operator?.category}>
          <OperatorIcon icon={operator?.icon} category={operator?.category} />
        </span>
        <div className="inspector__names">
          <h2 className="inspector__heading">{displayName(element, operator)}</h2>
          <span className="muted small">
            {operator?.title ?? element.type}
            {element.node ? (
              <>
                {" on "}
                <a href={`/nodes/${encodeURIComponent(element.node)}`}>{element.node}</a>
              </>
            ) : null}
          </span>
        </div>
        <StatusMark status={element.status} pill />
        {element.status !== "draft" && (
          <a
            className="button button--quiet button--small button--icon"
            href={elementPage(pipeline, element.id)}
            aria-label="Open as a page"
            title="Open as a page, with charts and records at full width"
          >
            <Maximize2 aria-hidden="true" />
          </a>
        )}
      </header>
      {element.status === "draft" ? (
        <Nothing text={NOT_DEPLOYED} />
      ) : (
        <div className="drawer">
          <ElementErrorNote pipeline={pipeline} element={element} />
          <ConnectorState element={element} operator={operator} />
          <ActiveHandover pipeline={pipeline} element={element} />
          {element.status !== "view" && (
            <Actions pipeline={pipeline} element={element} operator={operator} ask={ask} />
          )}
          <Details pipeline={pipeline} element={element} operator={operator} ask={ask} />
          {element.status !== "view" && (
            <AllFigures pipeline={pipeline} element={element} isSource={operator?.category === "sources"} />
          )}
        </div>
      )}
      {dialogs}
    </div>
  );
}

/** What is measured of the element, and why it is where it is: below its data. */
function AllFigures({
  pipeline,
  element,
  isSource,
}: {
  pipeline: string;
  element: LiveElement;
  isSource: boolean;
}) {
  return (
    <section className="stack" aria-label="Figures">
      <Figures pipeline={pipeline} element={element} />
      <Percentiles element={element} />
      <TargetCost element={element} />
      <WhyHere pipeline={pipeline} element={element} />
      <UserPlace pipeline={pipeline} element={element} isSource={isSource} />
      <ForEngineers pipeline={pipeline} element={element} />
    </section>
  );
}

const NOT_DEPLOYED = "It does not run yet. Deploy the pipeline to see its figures and records here.";

export function ElementErrorNote({ pipeline, element }: { pipeline: string; element: LiveElement }) {
  if (!element.error) return null;
  const { code, message, safe, next, traceback, at, ways } = element.error;
  return (
    <div className={`notice notice--${element.status === "stalled" ? "warning" : "error"}`} role="alert">
      <div className="stack stack--tight drawer__error">
        <b>{message}</b>
        {safe && <span>{safe}</span>}
        {next && <span>{next}</span>}
        {(ways ?? []).map((way) => (
          <div key={way.id} className="stack stack--tight">
            <ActionButton
              title={way.title}
              icon={<Play aria-hidden="true" />}
              disabled={roleReason("operator")}
              run={() => void actions.goOn(pipeline, element, way)}
            />
            <span className="small">{way.cost}</span>
          </div>
        ))}
        <span className="muted small">
          <ErrorCode code={code} /> <Ago at={at} />
        </span>
        {traceback && (
          <details>
            <summary>Traceback</summary>
            <pre className="code">{traceback}</pre>
          </details>
        )}
      </div>
    </div>
  );
}

export function ActiveHandover({ pipeline, element }: { pipeline: string; element: LiveElement }) {
  const group = element.group ?? element.id;
  const newest = useLive((state) =>
    state.handovers.find(
      (handover) =>
        handover.pipeline === pipeline &&
        (handover.id === element.handover || handover.group === group || handover.element === element.id),
    ),
  );
  // the last outcome stays in sight for a while: the gap is measured after it is done
  const recent =
    newest &&
    (newest.outcome === null || Date.now() - Date.parse(newest.ended_at ?? newest.created_at) < 60_000);
  return recent ? <HandoverCard handover={newest} /> : null;
}

export function Actions({ pipeline, element, operator, ask }: Shown) {
  const { migrate, restore, pause, resume, checkpoint } = element.actions;
  return (
    <div className="drawer__actions" role="group" aria-label="Actions">
      <ActionButton
        title="Migrate"
        icon={<ArrowRightLeft aria-hidden="true" />}
        disabled={actions.refusal(migrate)}
        run={() => ask({ kind: "migrate" })}
      />
      <ActionButton
        title="Restore"
        icon={<RotateCcw aria-hidden="true" />}
        disabled={actions.refusal(restore)}
        run={() => ask({ kind: "restore", checkpoint: null })}
      />
      {element.paused ? (
        <ActionButton
          title="Resume"
          icon={<Play aria-hidden="true" />}
          disabled={actions.refusal(resume)}
          run={() => void actions.setPaused(pipeline, element, false)}
        />
      ) : (
        <ActionButton
          title="Pause"
          icon={<Pause aria-hidden="true" />}
          disabled={actions.refusal(pause)}
          run={() => void actions.setPaused(pipeline, element, true)}
        />
      )}
      <ActionButton
        title="Checkpoint now"
        icon={<Save aria-hidden="true" />}
        disabled={actions.refusal(checkpoint)}
        run={() => void actions.checkpointNow(pipeline, element)}
      />
      {operator?.category === "sinks" && element.type.includes("csv") && (
        <a
          className="button button--small"
          href={`/api/v1${elementPath(pipeline, element.id)}/output`}
          download
        >
          <Download aria-hidden="true" />
          Download output
        </a>
      )}
    </div>
  );
}

export function Figures({ pipeline, element }: { pipeline: string; element: LiveElement }) {
  const drawn = useEditor((state) => findElement(shown(state), element.id));
  const inside = useRunsInside(pipeline, element.id, sourcesOf(drawn));
  const dead = element.dead_letters_open ?? 0;
  return (
    <div className="element-row">
      <div className="figures">
        <Figure
          label="In"
          value={rate(element.rows_in_per_s)}
          unit="rows/s"
          title={`${count(element.rows_in_total)} rows since it was first deployed`}
        />
        <Figure
          label="Out"
          value={rate(element.rows_out_per_s)}
          unit="rows/s"
          title={`${count(element.rows_out_total)} rows since it was first deployed`}
        />
        {!inside && (
          <WaitingFigure
            label="Lag"
            waits={{ rows: element.lag_rows, why: element.lag_unknown ?? undefined }}
            tone={element.status === "lagging" ? "lagging" : undefined}
          />
        )}
        <QuietFigure element={element} />
        <Latency element={element} />
        <Cpu element={element} />
        <Figure label="State" value={bytes(element.state_bytes)} title={keysOf(element)} />
        <Figure label="Dead letters" value={count(dead)} tone={dead > 0 ? "failed" : undefined} />
      </div>
    </div>
  );
}

/** When the next row is due, or since when there was none; nothing while rows come. */
function QuietFigure({ element }: { element: LiveElement }) {
  const quiet = quietOf(element, useNow());
  return quiet && <Figure wide label={quiet.label} value={quiet.value} title={exact(quiet.at)} />;
}

/** The latency of recent batches, beside its target. */
function Latency({ element }: { element: LiveElement }) {
  const { latency_ms_p50: usual, latency_ms_p95: most, latency_ms_target: target } = element;
  if (target === null) return null;
  const missed = missesTarget(element);
  return (
    <Figure
      wide
      label="Latency"
      value={millis(most)}
      unit={`of ${millis(target)}`}
      title={
        most === null
          ? `from the arrival of a row to its results; the target is ${millis(target)}`
          : `19 of 20 batches wrote their results within ${millis(most)} after their oldest row arrived, ` +
            `half of them within ${millis(usual)}; the target is ${millis(target)}` +
            (missed ? ". Give it a longer target, or move it to a node with more room" : "")
      }
      tone={missed ? "lagging" : undefined}
    />
  );
}

/** The CPU of the elements that run as one with it: it cannot be measured for one element alone. */
function Cpu({ element }: { element: LiveElement }) {
  const { cost } = element;
  const title = cost
    ? "of its node in the last half minute, by the time that its batches ran, including elements that run as one with it"
    : "not measured yet";
  return (
    <>
      <Figure label="CPU" value={cores(cost?.cpu_cores)} unit="cores" title={title} />
      <Figure label="CPU per row" value={perRow(element) ?? "–"} title={title} />
    </>
  );
}

function keysOf({ state_keys: keys }: LiveElement): string | undefined {
  return keys === null ? undefined : `state for ${plural(keys, "key")}`;
}

function Details(shown: Shown) {
  const { pipeline, element } = shown;
  const isView = element.status === "view";
  const chosen = useShownTab((state) => state.shown);
  const view = useView(pipeline, element);
  const first: Tab = isView
    ? { id: "view", title: "View", content: <View {...view} /> }
    : { id: "charts", title: "Charts", content: <ElementCharts pipeline={pipeline} element={element} /> };
  const tabs = [first, ...detailTabs(shown, view.source)];
  return (
    <Tabs
      narrow
      label="Details"
      value={tabOf(chosen, element.id, tabs)}
      onChange={(tab) => showTab(element.id, tab)}
      tabs={tabs}
    />
  );
}

/** What a view element shows, as it was drawn. */
export function useView(pipeline: string, element: LiveElement) {
  const node = useEditor((state) => findElement(shown(state), element.id));
  const input = Object.values(node?.inputs ?? {})[0];
  const source = input ? parseReference(input).element : null;
  const alarm = String(node?.params?.limit_of ?? "");
  const limit = useEditor((state) => limitOf(findElement(shown(state), alarm))?.value);
  const params = { ...node?.params, ...(limit !== undefined && { limit }) };
  return { pipeline, element: element.id, source, type: element.type, params };
}

/**
 * The tabs with records, state, dead letters, checkpoints and replicas that the element has. `source`: the
 * element whose output it reads.
 */
export function detailTabs({ pipeline, element, operator, ask }: Shown, source: string | null): Tab[] {
  const reads = (operator?.outputs.length ?? 0) === 0 ? source : element.id;
  const records: Tab[] = reads
    ? [{ id: "records", title: "Records", content: <Records pipeline={pipeline} element={reads} /> }]
    : [];
  if (element.status === "view") return records;
  const dead = element.dead_letters_open ?? 0;
  // only one element of a group has it
  const keeps = element.state_keys !== null && operator?.stateful !== false;
  const state: Tab[] = keeps
    ? [{ id: "state", title: "State", content: <KeptState pipeline={pipeline} element={element.id} /> }]
    : [];
  return [
    ...records,
    ...state,
    {
      id: "dead",
      title: dead > 0 ? `Dead letters (${count(dead)})` : "Dead letters",
      content: <DeadLetters pipeline={pipeline} element={element.id} />,
    },
    {
      id: "checkpoints",
      title: "Checkpoints",
      rare: "Checkpoints",
      content: (
        <Checkpoints
          pipeline={pipeline}
          element={element}
          onRestore={(checkpoint) => ask({ kind: "restore", checkpoint })}
        />
      ),
    },
    {
      id: "replicas",
      title: "Replicas",
      rare: "Replicas",
      content: (
        <>
          <Replicas pipeline={pipeline} element={element} />
          <PastHandovers pipeline={pipeline} element={element} />
        </>
      ),
    },
    {
      id: "log",
      title: "Log",
      rare: "Log",
      content: <NodeLogLines path={`${elementPath(pipeline, element.id)}/log`} about="this element" />,
    },
  ];
}
