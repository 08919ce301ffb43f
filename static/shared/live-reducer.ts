/**
 * What the browser knows of the live system, and how messages of /ws/live change it. Pure.
 *
 *     closed --open--> waiting --snapshot--> following --gap--> waiting (asks for a resync)
 */
import type { LiveMessage } from "./api.gen";
import type {
  Alarm,
  ClusterNode,
  Handover,
  LiveElement,
  LogEvent,
  Operation,
  PipelineItem,
  QueuedMove,
} from "./types";

export type { LiveMessage };

export interface LiveData {
  /** number of the newest message taken; null before the first snapshot of the connection */
  n: number | null;
  loaded: boolean;
  nodes: ClusterNode[];
  pipelines: PipelineItem[];
  elements: Record<string, LiveElement[]>;
  handovers: Handover[];
  moves: QueuedMove[];
  operations: Record<string, Operation>;
  events: LogEvent[];
  /** that are open, the worst first */
  alarms: Alarm[];
}

export const EVENTS_MAX = 200;
export const ENDED_HANDOVERS_MAX = 50;

export const nothing: LiveData = {
  n: null,
  loaded: false,
  nodes: [],
  pipelines: [],
  elements: {},
  handovers: [],
  moves: [],
  operations: {},
  events: [],
  alarms: [],
};

/** The next state, and whether the server must be asked for a new snapshot. */
export function reduce(state: LiveData, message: LiveMessage): { state: LiveData; resync: boolean } {
  if (message.type === "snapshot") {
    const { operations, ...rest } = message.data;
    return { state: { ...rest, operations: byId(operations), n: message.n, loaded: true }, resync: false };
  }
  // until the snapshot is here, updates have nothing to build on: it will hold them
  if (state.n === null) return { state, resync: false };
  if (message.n <= state.n) return { state, resync: false };
  if (message.n !== state.n + 1) return { state: { ...state, n: null }, resync: true };
  return { state: { ...state, ...changed(state, message), n: message.n }, resync: false };
}

function changed(state: LiveData, message: LiveMessage): Partial<LiveData> {
  switch (message.type) {
    case "nodes":
      return { nodes: message.data };
    case "pipelines":
      return { pipelines: message.data };
    case "elements":
      return { elements: { ...state.elements, [message.pipeline]: message.data } };
    case "moves":
      return { moves: message.data };
    case "alarms":
      return { alarms: withChanges(state.alarms, message.data.changed, message.data.gone) };
    case "handover":
      return { handovers: newest(state.handovers, message.data) };
    case "operation":
      return { operations: { ...state.operations, [message.data.id]: message.data } };
    case "event":
      return { events: [message.data, ...state.events].slice(0, EVENTS_MAX) };
    default:
      return {}; // a newer server may send more than this page knows
  }
}

const SEVERITIES: readonly Alarm["severity"][] = ["info", "warning", "critical"];

/** In the order of the snapshot: the worst first, of equal ones the newest. */
function withChanges(old: readonly Alarm[], changed: readonly Alarm[], gone: readonly number[]): Alarm[] {
  const off = new Set([...gone, ...changed.map(({ id }) => id)]);
  const rank = ({ severity }: Alarm) => SEVERITIES.indexOf(severity);
  return [...old.filter(({ id }) => !off.has(id)), ...changed].sort(
    (one, other) => rank(other) - rank(one) || other.id - one.id,
  );
}

function byId(operations: Operation[]): Record<string, Operation> {
  return Object.fromEntries(operations.map((operation) => [operation.id, operation]));
}

/** What people call an element or a group. */
export function nameIn(elements: LiveData["elements"], pipeline: string | null, id: string): string {
  const list = elements[pipeline ?? ""] ?? [];
  const element = list.find((each) => each.id === id);
  return element?.title ?? list.find((each) => each.group === id)?.group_title ?? id;
}

/** The present state of a node; null when no node has that name, undefined when that is not known yet. */
export function nodeNow(
  { loaded, nodes }: Pick<LiveData, "loaded" | "nodes">,
  name: string,
  first: ClusterNode | undefined,
): ClusterNode | null | undefined {
  return loaded ? (nodes.find((node) => node.name === name) ?? null) : first;
}

/**
 * A known handover keeps its place: two that run at once must not swap at each of their updates. All
 * running ones are kept, however many: a card that was dropped would come back with its next update.
 */
function newest(old: Handover[], update: Handover): Handover[] {
  const known = old.some(({ id }) => id === update.id);
  const all = known ? old.map((each) => (each.id === update.id ? update : each)) : [update, ...old];
  let ended = 0;
  return all.filter(({ outcome }) => outcome === null || ++ended <= ENDED_HANDOVERS_MAX);
}
