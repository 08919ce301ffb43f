import { useState } from "react";
import { ArrowRightLeft, Download, Pause, Play, RotateCcw, Save } from "lucide-react";
import * as actions from "../../shared/actions";
import { elementPath } from "../../shared/api";
import { bytes, count, millis, rate } from "../../shared/format";
import { useElement, useLive } from "../../shared/live";
import type { LiveElement, Operator } from "../../shared/types";
import { HandoverCard } from "../../shared/ui/handover";
import { OperatorIcon } from "../../shared/ui/icons";
import { Ago, Figure, StatusMark } from "../../shared/ui/parts";
import { Tabs, type Tab } from "../../shared/ui/tabs";
import { displayName, findElement, parseReference } from "../document";
import { shown, useEditor } from "../store";
import { ActionButton } from "./action-button";
import { ElementCharts } from "./charts";
import { Checkpoints } from "./checkpoints";
import { MigrateDialog } from "./migrate";
import { DeadLetters, Nothing, Records } from "./records";
import { PastHandovers, Replicas } from "./replicas";
import { RestoreDialog } from "./restore";
import { LiveSummary } from "./summary";
import { View } from "./view";
import "./live.css";

export function LivePanel() {
  const selected = useEditor((state) => state.selected);
  const [id] = selected;
  const pipeline = useEditor((state) => state.name);
  const element = useElement(pipeline, selected.size === 1 ? (id ?? null) : null);
  return (
    <aside className="panel panel--inspector" aria-label="Live state">
      {element ? (
        <Drawer key={element.id} pipeline={pipeline} element={element} />
      ) : (
        <LiveSummary pipeline={pipeline} />
      )}
    </aside>
  );
}

type Asking = { kind: "migrate" } | { kind: "restore"; checkpoint: number | null };
type Ask = (what: Asking) => void;

function Drawer({ pipeline, element }: { pipeline: string; element: LiveElement }) {
  const [asking, setAsking] = useState<Asking | null>(null);
  const close = () => setAsking(null);
  const operator = useEditor((state) => state.operators.get(element.type));
  return (
    <div className="inspector">
      <header className="inspector__head">
        <span className="op-icon" data-category={operator?.category}>
          <OperatorIcon icon={operator?.icon} category={operator?.category} />
        </span>
        <div className="inspector__names">
          <h2 className="inspector__heading ellipsis">{displayName(element, operator)}</h2>
          <span className="muted small ellipsis">
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
      </header>
      {element.status === "draft" ? (
        <Nothing text={NOT_DEPLOYED} />
      ) : (
        <div className="drawer">
          <ElementErrorNote element={element} />
          <ActiveHandover pipeline={pipeline} element={element} />
          {element.status !== "view" && (
            <Actions pipeline={pipeline} element={element} operator={operator} ask={setAsking} />
          )}
          {element.status !== "view" && <Figures element={element} />}
          <Details pipeline={pipeline} element={element} operator={operator} ask={setAsking} />
        </div>
      )}
      {asking?.kind === "migrate" && <MigrateDialog pipeline={pipeline} element={element} onClose={close} />}
      {asking?.kind === "restore" && (
        <RestoreDialog pipeline={pipeline} element={element} checkpoint={asking.checkpoint} onClose={close} />
      )}
    </div>
  );
}

const NOT_DEPLOYED = "It does not run yet. Deploy the pipeline to see its figures and records here.";

function ElementErrorNote({ element }: { element: LiveElement }) {
  if (!element.error) return null;
  const { message, safe, next, traceback, at } = element.error;
  return (
    <div className="notice notice--error" role="alert">
      <div className="stack stack--tight drawer__error">
        <b>{message}</b>
        {safe && <span>{safe}</span>}
        {next && <span>{next}</span>}
        <span className="muted small">
          <Ago at={at} />
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

function ActiveHandover({ pipeline, element }: { pipeline: string; element: LiveElement }) {
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

function Actions({
  pipeline,
  element,
  operator,
  ask,
}: {
  pipeline: string;
  element: LiveElement;
  operator: Operator | undefined;
  ask: Ask;
}) {
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

function Figures({ element }: { element: LiveElement }) {
  const dead = element.dead_letters_total ?? 0;
  return (
    <div className="figures">
      <Figure
        label="In"
        value={rate(element.rows_in_per_s)}
        unit="rows/s"
        title={`${count(element.rows_in_total)} rows since it started here`}
      />
      <Figure
        label="Out"
        value={rate(element.rows_out_per_s)}
        unit="rows/s"
        title={`${count(element.rows_out_total)} rows since it started here`}
      />
      <Figure
        label="Lag"
        value={count(element.lag_rows)}
        unit="rows"
        tone={element.status === "lagging" ? "lagging" : undefined}
      />
      <Figure
        label="Latency p50"
        value={millis(element.latency_ms_p50)}
        title={`p99 ${millis(element.latency_ms_p99)}`}
      />
      <Figure
        label="Batch p50"
        value={millis(element.batch_ms_p50)}
        title={`p99 ${millis(element.batch_ms_p99)}`}
      />
      <Figure label="State" value={bytes(element.state_bytes)} />
      <Figure label="Dead letters" value={count(dead)} tone={dead > 0 ? "failed" : undefined} />
      <Figure label="Epoch" value={element.epoch ?? "–"} title={`seq ${element.seq ?? "–"}`} />
    </div>
  );
}

function Details({
  pipeline,
  element,
  operator,
  ask,
}: {
  pipeline: string;
  element: LiveElement;
  operator: Operator | undefined;
  ask: Ask;
}) {
  const isView = element.status === "view";
  const [tab, setTab] = useState(isView ? "view" : "charts");
  const node = useEditor((state) => findElement(shown(state), element.id));
  const input = Object.values(node?.inputs ?? {})[0];
  const source = input ? parseReference(input).element : null;
  const tabs: Tab[] = [];
  if (isView)
    tabs.push({
      id: "view",
      title: "View",
      content: (
        <View
          pipeline={pipeline}
          element={element.id}
          source={source}
          type={element.type}
          params={node?.params ?? {}}
        />
      ),
    });
  else
    tabs.push({
      id: "charts",
      title: "Charts",
      content: <ElementCharts pipeline={pipeline} element={element} />,
    });
  const reads = (operator?.outputs.length ?? 0) === 0 ? source : element.id;
  if (reads)
    tabs.push({ id: "records", title: "Records", content: <Records pipeline={pipeline} element={reads} /> });
  if (!isView) {
    const dead = element.dead_letters_total ?? 0;
    tabs.push(
      {
        id: "dead",
        title: dead > 0 ? `Dead letters (${count(dead)})` : "Dead letters",
        content: <DeadLetters pipeline={pipeline} element={element.id} />,
      },
      {
        id: "checkpoints",
        title: "Checkpoints",
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
        content: (
          <>
            <Replicas pipeline={pipeline} element={element} />
            <PastHandovers pipeline={pipeline} element={element} />
          </>
        ),
      },
    );
  }
  return <Tabs label="Details" value={tab} onChange={setTab} tabs={tabs} />;
}
