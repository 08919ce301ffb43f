import type { ClusterNode, LiveElement, NodeLoad, PipelineItem, Status } from "./types";

type Tone = "running" | "standby" | "moving" | "lagging" | "failed" | "stopped";

const TONES: Record<string, Tone> = {
  running: "running",
  up: "running",
  done: "running",
  owner: "running",
  view: "standby",
  standby: "standby",
  draining: "moving",
  leaving: "moving",
  "drain is waiting": "lagging",
  deploying: "moving",
  starting: "lagging",
  restoring: "lagging",
  stalled: "lagging",
  undeploying: "moving",
  moving: "moving",
  lagging: "lagging",
  attention: "lagging",
  warning: "lagging",
  cordoned: "lagging",
  "starting up": "moving",
  failed: "failed",
  error: "failed",
  silent: "failed",
  paused: "stopped",
  stopped: "stopped",
  ended: "stopped",
  draft: "stopped",
  cancelled: "stopped",
};

const WORDS: Record<string, string> = {
  attention: "needs attention",
  view: "view",
  ended: "ended",
  silent: "node does not answer",
  starting: "does not process yet",
  restoring: "being restored",
  stalled: "does not go on",
  unheard: "not heard",
};

export const toneOf = (status: string): Tone => TONES[status] ?? "stopped";
export const wordOf = (status: Status | string): string => WORDS[status] ?? status;

const STANDS = new Set<string>(["failed", "silent", "stalled", "starting", "restoring", "unheard"]);

/** Whether all of a pipeline processes: one that needs attention may, or may not. */
export const isRunning = (
  { status }: Pick<PipelineItem, "status">,
  elements: readonly Pick<LiveElement, "status">[],
): boolean =>
  status === "running" || (status === "attention" && !elements.some((element) => STANDS.has(element.status)));

/** One word for a node's state. */
export function nodeStatus(node: ClusterNode): string {
  if (!node.heard) return "not heard";
  if (!node.up) return "silent";
  if (!node.ready) return "starting up";
  if (node.leaving_until) return "leaving";
  if (node.draining) return node.drain_blocked ? "drain is waiting" : "draining";
  return node.cordoned ? "cordoned" : "up";
}

/** The node's load while it is heard: the last report of a silent node is not current. */
export const loadNow = (node: Pick<ClusterNode, "up" | "load">): Partial<NodeLoad> =>
  (node.up && node.load) || {};

/** The node's alerts while it is heard; that it is silent is said elsewhere. */
export const alertsNow = (node: Pick<ClusterNode, "up" | "alerts">): ClusterNode["alerts"] =>
  node.up ? node.alerts : [];

export const NOT_HEARD = "No node can be heard now: see Needs attention";

/** Whether the node may be running: nobody knows about a node that was up when nodes were last heard. */
export const mayRun = (node: Pick<ClusterNode, "up" | "heard" | "silent_at">): boolean =>
  node.up || (!node.heard && node.silent_at === null);

/** Why the node cannot be drained now, or drained again; null when it can. */
export function drainRefusal(node: ClusterNode): string | null {
  if (node.leaving_until) return "The node is leaving: its elements are already moving to other nodes";
  if (node.draining && !node.drain_blocked) return "The node is already being drained";
  const owns = node.elements.some((element) => element.role === "owner");
  if (!owns && !node.drain_blocked) return "Nothing runs here";
  if (!node.heard) return NOT_HEARD;
  return node.up ? null : "The node does not answer: restore its elements instead";
}

/** Whether there is a deployment to upgrade or to undeploy: one that failed is over, though it is shown. */
export const isDeployed = (
  pipeline: Pick<PipelineItem, "deployment" | "status"> | null | undefined,
): boolean => (pipeline?.deployment ?? null) !== null && pipeline?.status !== "failed";

/** The name of an element in sentences. */
export const nameOf = (element: Pick<LiveElement, "id" | "title">): string => element.title || element.id;
