import { memo } from "react";
import { Handle, Position, useConnection, type NodeProps } from "@xyflow/react";
import { CircleAlert, Layers, Pin } from "lucide-react";
import { useShallow } from "zustand/react/shallow";
import { millis, rate } from "../shared/format";
import { shortPhase } from "../shared/handovers";
import { useElement, useHandover } from "../shared/live";
import { toneOf, wordOf } from "../shared/status";
import type { LiveElement, Port } from "../shared/types";
import { OperatorIcon } from "../shared/ui/icons";
import { StatusDot, Tip } from "../shared/ui/parts";
import { judge } from "./connect";
import { displayName } from "./document";
import type { CardNode, GroupNode } from "./flow";
import { current, faultsOf, useEditor } from "./store";

export const ElementCard = memo(function ElementCard({ id, data, selected }: NodeProps<CardNode>) {
  const { element, operator } = data;
  const live = useEditor((state) => state.mode === "live");
  const faults = useEditor(
    useShallow((state) =>
      faultsOf(state.faults, state.checked ?? state.history.present, id).map((fault) => fault.message),
    ),
  );
  const faulty = faults.length > 0 && !live;
  return (
    <div
      className={`el-card${selected ? " el-card--selected" : ""}${faulty ? " el-card--faulty" : ""}`}
      data-category={operator?.category}
    >
      <Ports id={id} ports={operator?.inputs ?? [{ name: "in" }]} side="in" />
      <div className="el-card__head">
        <span className="op-icon" data-category={operator?.category}>
          <OperatorIcon icon={operator?.icon} category={operator?.category} />
        </span>
        <span className="el-card__names">
          <span className="el-card__title">{displayName(element, operator)}</span>
          {live ? (
            <LiveType id={id} type={element.type} />
          ) : (
            <DraftType type={element.type} node={element.node ?? null} />
          )}
        </span>
        {live ? (
          <LiveStatus id={id} />
        ) : faulty ? (
          <Tip text={faults.join(" ")}>
            <span
              className="el-card__fault"
              role="img"
              aria-label={`${faults.length} problem${faults.length > 1 ? "s" : ""}`}
            >
              <CircleAlert aria-hidden="true" />
            </span>
          </Tip>
        ) : null}
      </div>
      {live && <LiveFigures id={id} isSink={operator?.outputs.length === 0} />}
      <Ports id={id} ports={operator?.outputs ?? [{ name: "out" }]} side="out" />
    </div>
  );
});

function DraftType({ type, node }: { type: string; node: string | null }) {
  return (
    <span className="el-card__type">
      {type}
      {node && (
        <>
          {" · "}
          <Pin aria-label="pinned to" />
          {node}
        </>
      )}
    </span>
  );
}

function LiveType({ id, type }: { id: string; type: string }) {
  const element = useElement(
    useEditor((state) => state.name),
    id,
  );
  return (
    <span className="el-card__type">
      {/* the node first: it is what changes, and the type may not fit */}
      {element?.node && `${element.node} · `}
      {type}
    </span>
  );
}

function LiveStatus({ id }: { id: string }) {
  const element = useElement(
    useEditor((state) => state.name),
    id,
  );
  return <StatusDot status={element?.status ?? "draft"} />;
}

function LiveFigures({ id, isSink }: { id: string; isSink: boolean }) {
  const element = useElement(
    useEditor((state) => state.name),
    id,
  );
  const handover = useHandover(element?.handover);
  if (!element) return <div className="el-card__figures muted">not deployed</div>;
  if (handover && !handover.outcome) {
    return (
      <div className="el-card__figures el-card__figures--moving">
        <span className="ellipsis">
          {handover.kind === "restoration" ? "Restoring on" : "Moving to"} {handover.target}
        </span>
        <b>{shortPhase(handover)}</b>
        {handover.gap_ms != null && <span className="num">gap {millis(handover.gap_ms)}</span>}
      </div>
    );
  }
  if (!FLOWING.has(element.status)) return <StatusRow element={element} />;
  return (
    <div className="el-card__figures num">
      <span>
        <b>{rate(element.rows_in_per_s)}</b> in/s
      </span>
      {!isSink && (
        <span>
          <b>{rate(element.rows_out_per_s)}</b> out/s
        </span>
      )}
      <span className={(element.lag_rows ?? 0) > 0 && element.status === "lagging" ? "el-card__lag" : ""}>
        lag <b>{rate(element.lag_rows)}</b>
      </span>
    </div>
  );
}

/** Statuses in which the figures say more than the word. */
const FLOWING = new Set<string>(["running", "lagging", "moving"]);

function StatusRow({ element }: { element: LiveElement }) {
  const text: Partial<Record<string, string>> = {
    failed: element.error?.message ?? "see its error",
    silent: "restore it elsewhere",
    unheard: "see Needs attention",
    view: "open it to look",
    paused: `${rate(element.lag_rows)} rows wait`,
    draft: "not deployed",
    ended: "the recording is over",
  };
  return (
    <div className={`el-card__figures el-card__figures--word status--${toneOf(element.status)}`}>
      {element.status !== "view" && element.status !== "draft" && <b>{wordOf(element.status)}</b>}
      <span className="ellipsis muted" title={text[element.status]}>
        {text[element.status]}
      </span>
    </div>
  );
}

function Ports({ id, ports, side }: { id: string; ports: Port[]; side: "in" | "out" }) {
  const editable = useEditor((state) => state.mode === "edit");
  return ports.map((port, index) => (
    <PortHandle
      key={port.name}
      id={id}
      port={port}
      side={side}
      top={`${((index + 1) / (ports.length + 1)) * 100}%`}
      named={ports.length > 1}
      editable={editable}
    />
  ));
}

function PortHandle({
  id,
  port,
  side,
  top,
  named,
  editable,
}: {
  id: string;
  port: Port;
  side: "in" | "out";
  top: string;
  named: boolean;
  editable: boolean;
}) {
  // while a connection is drawn, each port shows whether it would accept it
  const fit = useConnection((connection) => {
    if (!connection.inProgress || connection.fromHandle.type === (side === "in" ? "target" : "source"))
      return "";
    const other = { element: connection.fromNode.id, port: connection.fromHandle.id ?? "out" };
    const mine = { element: id, port: port.name };
    const { operators, schemas } = useEditor.getState();
    const verdict =
      side === "in"
        ? judge(current(), operators, other, mine, schemas)
        : judge(current(), operators, mine, other, schemas);
    return verdict.ok ? "port--fits" : "port--refuses";
  });
  const label = `${side === "in" ? "Input" : "Output"} ${port.name} of ${id}`;
  return (
    <Handle
      id={port.name}
      type={side === "in" ? "target" : "source"}
      position={side === "in" ? Position.Left : Position.Right}
      className={`port ${fit}`}
      style={{ top }}
      isConnectable={editable}
      aria-label={label}
      title={port.description ? `${port.name}: ${port.description}` : label}
    >
      {named && <span className={`port__name port__name--${side}`}>{port.name}</span>}
    </Handle>
  );
}

export const GroupBox = memo(function GroupBox({ data }: NodeProps<GroupNode>) {
  return (
    <div className="group-box" style={{ width: data.width, height: data.height }}>
      <span className="group-box__name">
        <Layers aria-hidden="true" />
        Runs as one · {data.group.id}
      </span>
    </div>
  );
});
