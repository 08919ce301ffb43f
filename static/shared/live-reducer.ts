/**
 * What the browser knows of the live system, and how messages of /ws/live change it. Pure.
 *
 *     closed --open--> waiting --snapshot--> following --gap--> waiting (asks for a resync)
 */
import type { ClusterNode, Handover, LiveElement, LogEvent, Operation, PipelineItem } from "./types";

export interface LiveData {
  /** number of the newest message taken; null: no snapshot since the connection opened */
  n: number | null;
  loaded: boolean;
  nodes: ClusterNode[];
  pipelines: PipelineItem[];
  elements: Record<string, LiveElement[]>;
  handovers: Handover[];
  operations: Record<string, Operation>;
  events: LogEvent[];
}

export interface LiveMessage {
  type: string;
  n: number;
  pipeline?: string;
  data: unknown;
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
  operations: {},
  events: [],
};

/** The next state, and whether the server must be asked for a new snapshot. */
export function reduce(state: LiveData, message: LiveMessage): { state: LiveData; resync: boolean } {
  if (message.type === "snapshot") return { state: snapshot(state, message), resync: false };
  // until the snapshot is here, updates have nothing to build on: it will hold them
  if (state.n === null) return { state, resync: false };
  if (message.n <= state.n) return { state, resync: false };
  if (message.n !== state.n + 1) return { state: { ...state, n: null }, resync: true };
  return { state: { ...apply(state, message), n: message.n }, resync: false };
}

function snapshot(state: LiveData, message: LiveMessage): LiveData {
  const data = message.data as Partial<Omit<LiveData, "operations">> & { operations?: Operation[] };
  return {
    n: message.n,
    loaded: true,
    nodes: data.nodes ?? [],
    pipelines: data.pipelines ?? [],
    elements: data.elements ?? {},
    handovers: data.handovers ?? [],
    operations: data.operations ? byId(data.operations) : state.operations,
    events: data.events ?? [],
  };
}

function apply(state: LiveData, message: LiveMessage): LiveData {
  const { data } = message;
  switch (message.type) {
    case "nodes":
      return { ...state, nodes: merged(state.nodes, data, (node) => node.name) };
    case "pipelines":
      return { ...state, pipelines: merged(state.pipelines, data, (item) => item.name) };
    case "elements":
      return { ...state, elements: withElements(state.elements, message) };
    case "handover":
      return { ...state, handovers: newest(state.handovers, data as Handover | Handover[]) };
    case "operation": {
      const operations = many(data as Operation | Operation[]);
      return { ...state, operations: { ...state.operations, ...byId(operations) } };
    }
    case "event": {
      const events = many(data as LogEvent | LogEvent[]);
      return { ...state, events: [...events, ...state.events].slice(0, EVENTS_MAX) };
    }
    default:
      return state; // a newer server may send more than this page knows
  }
}

const many = <T>(data: T | T[]): T[] => (Array.isArray(data) ? data : [data]);

function byId(operations: Operation[]): Record<string, Operation> {
  return Object.fromEntries(operations.map((operation) => [operation.id, operation]));
}

/** What people call an element or a group. */
export function nameIn(elements: LiveData["elements"], pipeline: string | null, id: string): string {
  const list = elements[pipeline ?? ""] ?? [];
  const element = list.find((each) => each.id === id);
  return element?.title ?? list.find((each) => each.group === id)?.group_title ?? id;
}

/** A node as it is now. null: there is none of that name; undefined: not known yet. */
export function nodeNow(
  { loaded, nodes }: Pick<LiveData, "loaded" | "nodes">,
  name: string,
  first: ClusterNode | undefined,
): ClusterNode | null | undefined {
  return loaded ? (nodes.find((node) => node.name === name) ?? null) : first;
}

/** A list replaces; one object is put in its place. */
function merged<T>(old: T[], data: unknown, key: (item: T) => string): T[] {
  if (Array.isArray(data)) return data as T[];
  const item = data as T;
  return old.some((each) => key(each) === key(item))
    ? old.map((each) => (key(each) === key(item) ? item : each))
    : [...old, item];
}

function withElements(old: Record<string, LiveElement[]>, message: LiveMessage) {
  if (message.pipeline && Array.isArray(message.data)) {
    return { ...old, [message.pipeline]: message.data as LiveElement[] };
  }
  return { ...old, ...(message.data as Record<string, LiveElement[]>) };
}

/** A known handover keeps its place: two that run at once must not swap at each of their updates. All that run
 * are kept, however many: the card of one that was cut would go, and come back with its next update. */
function newest(old: Handover[], data: Handover | Handover[]): Handover[] {
  const changed = new Map(many(data).map((handover) => [handover.id, handover]));
  const known = old.map((handover) => {
    const update = changed.get(handover.id);
    changed.delete(handover.id);
    return update ?? handover;
  });
  let ended = 0;
  return [...changed.values(), ...known].filter(
    ({ outcome }) => outcome === null || ++ended <= ENDED_HANDOVERS_MAX,
  );
}
