/** The replicas of an element and what they allow. Pure. */
import { behindWords } from "./handovers";
import { mayRun } from "./status";
import type { ClusterNode, LiveElement, ReplicaNote } from "./types";

/** What a replica does now, in words: "following, 2 batches behind". */
export function replicaWords(replica: ReplicaNote): string {
  if (replica.phase === "fenced") return "locked out: another one took over";
  if (replica.role !== "standby") return replica.phase || replica.role;
  if (replica.armed) return "ready to take over at once";
  if (replica.phase === "reading the journal") return "reads what was done before it came";
  if (replica.phase && replica.phase !== "following") return replica.phase;
  return `following, ${behindWords(replica.behind)}`;
}

/** The replicas in order: the owner, then the standbys, those that can take over soonest first. */
export function sortedReplicas(element: LiveElement): ReplicaNote[] {
  const rank = (replica: ReplicaNote) => (replica.role === "owner" ? 0 : replica.role === "standby" ? 1 : 2);
  return [...element.replicas].sort(
    (a, b) => rank(a) - rank(b) || a.behind - b.behind || a.node.localeCompare(b.node),
  );
}

/**
 * The nodes of its standbys: first the one that was ordered, then those that stay for a while after a
 * move.
 */
export function standbyNodes(element: LiveElement): string[] {
  const asked = element.standby ? [element.standby.node] : [];
  const heard = sortedReplicas(element).flatMap(({ role, node }) =>
    role === "standby" && node !== element.node ? node : [],
  );
  return [...new Set([...asked, ...heard])];
}

const FOLLOWS = new Set(["following", "arming", "armed"]);

export function standbyOn(element: LiveElement, node: string): ReplicaNote | undefined {
  return element.replicas.find((replica) => replica.node === node && replica.role === "standby");
}

/**
 * The standby from which an element is restored at once, preferably on a node that takes it; null when
 * none follows.
 */
export function hotStandby(
  element: LiveElement,
  nodes: ClusterNode[],
  refused: (node: ClusterNode) => string | null,
): ReplicaNote | null {
  const following = sortedReplicas(element).flatMap((replica) => {
    const node = nodes.find((each) => each.name === replica.node);
    const fit = replica.role === "standby" && replica.node !== element.node && FOLLOWS.has(replica.phase);
    return fit && node && mayRun(node) ? { replica, node } : [];
  });
  const best = following.find(({ node }) => refused(node) === null) ?? following[0];
  return best?.replica ?? null;
}

/** The node that a dialog offers first: one with a standby, else the one with the most free CPU. */
export function bestTarget(
  element: LiveElement,
  nodes: ClusterNode[],
  refused: (node: ClusterNode) => string | null,
): string | null {
  const fit = nodes.filter((node) => refused(node) === null);
  const cost = (node: ClusterNode) =>
    standbyOn(element, node.name) ? -1 : (node.load?.cpu_ratio ?? Number.MAX_VALUE);
  return fit.sort((a, b) => cost(a) - cost(b) || a.name.localeCompare(b.name))[0]?.name ?? null;
}
