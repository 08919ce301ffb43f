/** What lanes are drawn of: the lane with its head, the frame of a site, and what a node has of an element. */
import { memo } from "react";
import { type NodeProps } from "@xyflow/react";
import {
  ArchiveRestore,
  BellRing,
  Cpu,
  LayoutDashboard,
  MapPin,
  MemoryStick,
  MoreHorizontal,
  Sparkles,
} from "lucide-react";
import * as actions from "../../shared/actions";
import { bytes, percent, plural } from "../../shared/format";
import { behindWords, shortPhase } from "../../shared/handovers";
import { useElement, useLive, useNode } from "../../shared/live";
import { roleReason } from "../../shared/page";
import { standbyOn } from "../../shared/replicas";
import { alertsNow, drainRefusal, loadNow, mayRun, nameOf, nodeStatus } from "../../shared/status";
import type { Alarm, ClusterNode, Handover, LiveElement } from "../../shared/types";
import { Menu } from "../../shared/ui/menu";
import { Ago, Meter, StatusMark } from "../../shared/ui/parts";
import { useEditor } from "../store";
import type { FrameFlowNode, GhostFlowNode, LaneFlowNode } from "./arranged";
import { goingTo, liesOn, nodeOf } from "./dropping";
import type { Lane } from "./layout";
import { filledShare } from "./lies";
import { useLanes, type Hanging } from "./store";

/** How a lane looks while something hangs: whether it would take that. */
function takes(lane: Lane, { hanging }: { hanging: Hanging | null }, live: boolean): string {
  if (!hanging) return "";
  const over = hanging.over === lane.key ? " lane--over" : "";
  if (!live) return lane.kind === "views" ? "" : ` lane--takes${over}`;
  const node = nodeOf(lane.key);
  if (node === null || liesOn(hanging.units, node)) return "";
  return goingTo(hanging.units, node).length > 0 ? ` lane--takes${over}` : over && ` lane--refuses${over}`;
}

export const LaneBox = memo(function LaneBox({ data: { lane } }: NodeProps<LaneFlowNode>) {
  const live = useEditor((state) => state.mode === "live");
  const hangs = useLanes((state) => takes(lane, state, live));
  const node = useNode(lane.name);
  const dead = lane.kind === "node" && (!node || !mayRun(node));
  return (
    <section
      className={`lane-box${lane.folded ? " lane-box--folded" : ""}${dead ? " lane-box--dead" : ""}${hangs}`}
      style={{ width: lane.width, height: lane.height }}
      aria-label={titleOf(lane, live)}
      data-lane={lane.key}
    >
      {lane.kind === "node" ? (
        <NodeHead lane={lane} node={node} live={live} />
      ) : (
        <OtherHead lane={lane} live={live} />
      )}
    </section>
  );
});

const titleOf = (lane: Lane, live: boolean): string =>
  lane.kind === "node"
    ? lane.name
    : lane.kind === "site"
      ? `Any node at ${lane.name}`
      : lane.kind === "views"
        ? "In the dashboard"
        : live
          ? "Without a node"
          : "Fogline chooses";

function OtherHead({ lane, live }: { lane: Lane; live: boolean }) {
  const Icon = lane.kind === "views" ? LayoutDashboard : lane.kind === "site" ? MapPin : Sparkles;
  const note = {
    node: "",
    views: "Only the dashboard shows it: it runs on no node.",
    site: "Fogline chooses one of its nodes at the next Deploy.",
    anywhere: live ? "It does not run." : "Fogline chooses a node at the next Deploy.",
  }[lane.kind];
  return (
    <header className="lane-head">
      <span className="lane-head__name">
        <Icon aria-hidden="true" />
        {titleOf(lane, live)}
      </span>
      <span className="lane-head__note">{note}</span>
    </header>
  );
}

function NodeHead({ lane, node, live }: { lane: Lane; node: ClusterNode | undefined; live: boolean }) {
  if (!node)
    return (
      <header className="lane-head">
        <span className="lane-head__name">{lane.name}</span>
        <span className="lane-head__note">This node is not registered.</span>
      </header>
    );
  const status = nodeStatus(node);
  const load = loadNow(node);
  const [alert] = alertsNow(node);
  const wrong = alert?.message.split(". ")[0];
  if (lane.folded)
    return (
      <header className="lane-head lane-head--folded">
        <a className="lane-head__name nodrag nopan" href={`/nodes/${encodeURIComponent(node.name)}`}>
          {node.name}
        </a>
        {status === "up" ? (
          <span className="lane-head__note num">CPU {percent(load.cpu_ratio)}</span>
        ) : (
          <StatusMark status={status} />
        )}
      </header>
    );
  return (
    <header className="lane-head">
      <span className="row row--between">
        <a className="lane-head__name nodrag nopan" href={`/nodes/${encodeURIComponent(node.name)}`}>
          {node.name}
        </a>
        <NodeMenu node={node} />
      </span>
      <span className="lane-head__state">
        <StatusMark status={status} />
        {live && <AlarmsHere node={node.name} />}
      </span>
      {node.up ? (
        <>
          <Load icon={<Cpu aria-hidden="true" />} label={`CPU of ${node.name}`} ratio={load.cpu_ratio} busy />
          <Load
            icon={<MemoryStick aria-hidden="true" />}
            label={`Memory of ${node.name}`}
            ratio={load.memory_ratio}
          />
        </>
      ) : (
        <span className="lane-head__note">
          Last heard <Ago at={node.last_seen_at} />
        </span>
      )}
      {live && wrong && (
        <span className="lane-head__wrong" title={alert?.message}>
          {wrong}
        </span>
      )}
    </header>
  );
}

/** How many active alarms the node and what runs there have. */
function AlarmsHere({ node }: { node: string }) {
  const alarms = useLive((state) => activeAt(state.alarms, node));
  const urgent = useLive((state) => activeAt(state.alarms, node, "info"));
  if (alarms === 0) return null;
  return (
    <a
      className="lane-head__alarm nodrag nopan"
      data-urgent={urgent > 0}
      href={`/alarms/?q=${encodeURIComponent(node)}`}
    >
      <BellRing aria-hidden="true" />
      {plural(alarms, "active alarm")}
    </a>
  );
}

const activeAt = (alarms: readonly Alarm[], node: string, without?: Alarm["severity"]): number =>
  alarms.filter((alarm) => alarm.node === node && alarm.status !== "silenced" && alarm.severity !== without)
    .length;

function Load({
  icon,
  label,
  ratio,
  busy,
}: {
  icon: React.ReactNode;
  label: string;
  ratio: number | undefined;
  busy?: boolean;
}) {
  return (
    <span className="lane-head__load num" title={label}>
      {icon}
      <Meter ratio={ratio} label={label} busy={busy} />
      <b>{percent(ratio)}</b>
    </span>
  );
}

function NodeMenu({ node }: { node: ClusterNode }) {
  const locked = roleReason("operator");
  const owned = node.elements.filter(({ role }) => role === "owner").length;
  return (
    <Menu
      trigger={
        <button
          type="button"
          className="button button--quiet button--icon button--small nodrag nopan"
          aria-label={`Actions of ${node.name}`}
        >
          <MoreHorizontal aria-hidden="true" />
        </button>
      }
      entries={[
        node.cordoned
          ? {
              title: "Uncordon: it takes elements again",
              disabled: locked,
              run: () => void actions.setCordoned(node, false),
            }
          : {
              title: "Cordon: it takes no new elements",
              disabled: locked,
              run: () => void actions.setCordoned(node, true),
            },
        {
          title: `Drain: move ${plural(owned, "element")} away`,
          disabled: locked ?? drainRefusal(node),
          run: () => void actions.drain(node),
        },
      ]}
    />
  );
}

export const FrameBox = memo(function FrameBox({ data: { frame } }: NodeProps<FrameFlowNode>) {
  const over = useLanes(({ hanging }) => hanging?.over === `site ${frame.site}`);
  return (
    <section
      className={`site-frame${over ? " site-frame--over" : ""}`}
      style={{ width: frame.width, height: frame.height }}
      aria-label={`Site ${frame.site}`}
    >
      <span className="site-frame__name">
        <MapPin aria-hidden="true" />
        {frame.site}
      </span>
    </section>
  );
});

/** What a node has of an element that another node owns. */
export const GhostCard = memo(function GhostCard({ data: { ghost, handover } }: NodeProps<GhostFlowNode>) {
  const pipeline = useEditor((state) => state.name);
  const element = useElement(pipeline, ghost.element);
  if (!element) return null;
  const share = handover ? filledShare(handover) : 0;
  return (
    <div className={`ghost ghost--${ghost.role}`} style={{ width: ghost.width, height: ghost.height }}>
      {handover && (
        <span className="ghost__fill" style={{ transform: `scaleX(${share})` }} aria-hidden="true" />
      )}
      <span className="ghost__name">{nameOf(element)}</span>
      <span className="ghost__words num">
        {ghost.role === "backup" && <ArchiveRestore aria-hidden="true" />}
        {ghostWords(ghost.role, element, nodeOf(ghost.lane) ?? "", handover)}
      </span>
    </div>
  );
});

function ghostWords(role: string, element: LiveElement, node: string, handover: Handover | null): string {
  if (role === "planned") return "would go here";
  if (role === "backup") return "backup";
  if (role === "left") return `restored on ${element.node ?? "another node"}`;
  if (role === "moving" && handover) {
    const { bytes_copied, begun } = handover;
    const far = bytes_copied
      ? `${bytes(bytes_copied)}${begun.bytes ? ` of ${bytes(begun.bytes)}` : ""}, `
      : "";
    return `${far}${shortPhase(handover)}`;
  }
  const standby = standbyOn(element, node);
  if (!standby) return "standby";
  return `standby, ${standby.armed ? "ready" : behindWords(standby.behind)}`;
}
