/** In which lane each element lies, and what other nodes have of it. Pure. */
import { activePhase } from "../../shared/handovers";
import { standbyNodes } from "../../shared/replicas";
import { mayRun } from "../../shared/status";
import type { ClusterNode, DocElement, Handover, LiveElement } from "../../shared/types";
import type { Point } from "../places";
import { frameAt, laneAt, type GhostRole, type LaneHead, type LaneLayout, type Shadow } from "./layout";

export const VIEWS = "views";
export const ANYWHERE = "anywhere";
export const nodeLane = (node: string): string => `node ${node}`;
export const siteLane = (site: string): string => `site ${site}`;

/** The lane of an element that runs, or of one that only the dashboard shows. */
export function liveLane(element: LiveElement | undefined): string {
  if (!element) return ANYWHERE;
  if (element.status === "view") return VIEWS;
  return element.node === null ? ANYWHERE : nodeLane(element.node);
}

/** The lane of an element of a draft: where it is pinned. */
export function draftLane(element: DocElement, isView: boolean): string {
  if (isView) return VIEWS;
  if (element.node) return nodeLane(element.node);
  return element.site ? siteLane(element.site) : ANYWHERE;
}

/** The lane at a place of a draft, or that of the site in whose frame the place is; null where there is neither. */
export function draftLaneAt(layout: LaneLayout, place: Point): string | null {
  const frame = frameAt(layout, place);
  return laneAt(layout, place)?.key ?? (frame && siteLane(frame.site));
}

const head = (kind: LaneHead["kind"], name: string, site: string, key: string): LaneHead => ({
  key,
  kind,
  name,
  site,
});

/**
 * The lanes in the order in which they are drawn: what has no node yet, then nodes by site and name, then what
 * only the dashboard shows. `used`: the lanes in which elements lie. Nodes that are named there and are not
 * registered have lanes, too.
 */
export function laneHeads(
  nodes: readonly Pick<ClusterNode, "name" | "site">[],
  used: ReadonlySet<string>,
  draft: boolean,
): LaneHead[] {
  const known = new Set(nodes.map(({ name }) => nodeLane(name)));
  const gone = [...used].flatMap((key) => (key.startsWith("node ") && !known.has(key) ? key.slice(5) : []));
  const all = [
    ...nodes.map(({ name, site }) => head("node", name, site, nodeLane(name))),
    ...gone.map((name) => head("node", name, "", nodeLane(name))),
  ];
  const sites = new Set(all.flatMap(({ site }) => site || []));
  const wanted = [...used].flatMap((key) => (key.startsWith("site ") ? key.slice(5) : []));
  const places = draft ? [...new Set([...sites, ...wanted])] : [];
  const atSites = places.map((site) => head("site", site, site, siteLane(site)));
  const rank = ({ kind }: LaneHead) => (kind === "site" ? 0 : 1);
  const placed = [...all, ...atSites].sort(
    (a, b) => compare(a.site || a.name, b.site || b.name) || rank(a) - rank(b) || compare(a.name, b.name),
  );
  const anywhere = draft || used.has(ANYWHERE) ? [head("anywhere", "", "", ANYWHERE)] : [];
  const views = used.has(VIEWS) ? [head("views", "", "", VIEWS)] : [];
  return [...anywhere, ...placed, ...views];
}

const compare = (a: string, b: string): number => a.localeCompare(b, "en", { numeric: true });

/**
 * What other nodes have of an element: each node once, with what matters most there. `left`: the dead node from
 * which it was restored.
 */
export function shadowsOf(
  element: LiveElement,
  handover: Handover | undefined,
  planned: string | null,
  left: string | null,
): Shadow[] {
  const found = new Map<string, GhostRole>();
  const add = (node: string, role: GhostRole) => {
    if (node !== element.node && !found.has(node)) found.set(node, role);
  };
  if (handover && handover.outcome === null) add(handover.target, "moving");
  if (planned !== null) add(planned, "planned");
  if (left !== null) add(left, "left");
  for (const node of standbyNodes(element)) add(node, "standby");
  for (const node of element.checkpoint?.where ?? []) add(node, "backup");
  return [...found].map(([node, role]) => ({ element: element.id, lane: nodeLane(node), role }));
}

/** Whether a handover is one of the element, or of its group. */
function concerns(handover: Handover, pipeline: string, element: LiveElement): boolean {
  const isOfElement = handover.element === element.id || handover.group === element.group;
  return handover.pipeline === pipeline && isOfElement;
}

/** The handover under way of an element, which may have been ordered for another one of its group. */
export function underWay(
  handovers: readonly Handover[],
  pipeline: string,
  element: LiveElement,
): Handover | undefined {
  return handovers.find(
    (handover) =>
      handover.outcome === null &&
      (handover.id === element.handover || concerns(handover, pipeline, element)),
  );
}

/** The newest handover of an element that has ended. */
export function lastMove(
  handovers: readonly Handover[],
  pipeline: string,
  element: LiveElement,
): Handover | undefined {
  return handovers.find((handover) => handover.outcome !== null && concerns(handover, pipeline, element));
}

/** The nodes that run nothing now, as far as is known. */
export const deadNodes = (nodes: readonly ClusterNode[]): ReadonlySet<string> =>
  new Set(nodes.filter((node) => !mayRun(node)).map(({ name }) => name));

/** The dead node from which an element was restored; null when it came to its node otherwise. */
export function leftNode(
  last: Handover | undefined,
  element: LiveElement,
  dead: ReadonlySet<string>,
): string | null {
  if (!last || last.kind !== "restoration" || last.outcome !== "done") return null;
  return last.target === element.node && dead.has(last.origin ?? "") ? last.origin : null;
}

/** How much of the state the target has, 0 to 1. */
export function filledShare(handover: Handover): number {
  const { begun, bytes_copied, outcome } = handover;
  const phase = activePhase(handover)?.phase ?? handover.phase;
  if (outcome !== null) return outcome === "done" ? 1 : 0;
  if (begun.had || begun.start === "follows") return phase === "PENDING" ? 0 : 1;
  if (phase === "PENDING" || phase === "STOP") return 0;
  if (phase !== "PREPARE" && phase !== "COPY") return 1;
  return begun.bytes ? Math.min(0.95, bytes_copied / begun.bytes) : 0;
}
