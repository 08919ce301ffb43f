/** What is being done about the elements of a node that does not answer. Pure. */
import { shortPhase } from "./handovers";
import { instant } from "./format";
import { nameIn } from "./live-reducer";
import { nameOf } from "./status";
import type { ClusterNode, Handover, LiveElement } from "./types";

export interface Care {
  pipeline: string;
  element: string;
  tone: "moving" | "running" | "failed";
  text: string;
  /** the handover that does it, when there is one */
  handover: string | null;
}

/** How far the clocks of a node's last report and of the order may be apart. */
const SLACK_MS = 60_000;

/** One line for each group that the node owned when it stopped answering. */
export function careOf(
  node: ClusterNode,
  elements: Record<string, LiveElement[]>,
  handovers: Handover[],
): Care[] {
  if (!node.heard) return []; // nothing is restored meanwhile, and its elements may well run
  const since = (instant(node.last_seen_at) ?? 0) - SLACK_MS;
  const seen = new Set<string>();
  const lines: Care[] = [];
  for (const handover of handovers) {
    const key = `${handover.pipeline}/${handover.group}`;
    if (handover.origin !== node.name || seen.has(key)) continue;
    if (handover.outcome !== null && (instant(handover.ended_at) ?? 0) < since) continue;
    seen.add(key);
    lines.push({
      pipeline: handover.pipeline,
      element: handover.element,
      handover: handover.id,
      ...handoverCare(handover, nameIn(elements, handover.pipeline, handover.element)),
    });
  }
  for (const [pipeline, list] of Object.entries(elements)) {
    for (const element of list) {
      const key = `${pipeline}/${element.group ?? element.id}`;
      if (element.node !== node.name || element.status !== "silent" || seen.has(key)) continue;
      seen.add(key);
      lines.push({ pipeline, element: element.id, handover: null, ...waitingCare(element) });
    }
  }
  return lines;
}

function handoverCare(handover: Handover, name: string): Pick<Care, "tone" | "text"> {
  if (handover.outcome === null)
    return {
      tone: "moving",
      text: `${name} is being restored on ${handover.target}: ${shortPhase(handover)}`,
    };
  if (handover.outcome === "done") return { tone: "running", text: `${name} now runs on ${handover.target}` };
  return { tone: "failed", text: `${name} was not restored on ${handover.target}` };
}

function waitingCare(element: LiveElement): Pick<Care, "tone" | "text"> {
  const { restore } = element.actions;
  const why = restore && !restore.allowed ? restore.reason : null;
  return {
    tone: "failed",
    text: why ? `${nameOf(element)} waits: ${why}` : `${nameOf(element)} waits to be restored`,
  };
}
