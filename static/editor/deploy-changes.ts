/** What a deployment will do, as shown before it is done. Pure. */
import { listed, plural } from "../shared/format";
import type { DeployChange, DeployPlan } from "../shared/types";

type Change = DeployChange["change"];

/** The order in which the changes are shown. */
const ORDER: readonly Change[] = ["incompatible", "restart", "upgraded", "retuned", "added", "removed"];

export const CHANGE_WORDS: Record<Change, { title: string; text: string }> = {
  incompatible: {
    title: "Does not fit the running pipeline",
    text: "Take these changes back, or undeploy the pipeline and deploy it again: it then starts without its present state.",
  },
  restart: {
    title: "Cannot keep its state",
    text: "Only this element starts again, with an empty state, and reads on in its input: no row is skipped or read twice. Deploying the earlier version does not bring the lost state back.",
  },
  upgraded: {
    title: "Starts again with its state",
    text: "It stops after its current batch and continues from there, on the same node unless another is named. Nothing is lost or repeated; its output pauses for a few seconds.",
  },
  retuned: {
    title: "Changes while it runs",
    text: "It changes at once and does not stop.",
  },
  added: {
    title: "Is added",
    text: "It starts with an empty state and reads the rows that its inputs still hold, then the new ones. Running elements are not affected.",
  },
  removed: {
    title: "Is removed",
    text: "It ends for good after its current batch. Deploying the earlier version does not bring back its state, its streams and its checkpoints. Download the files that it has written first.",
  },
  unchanged: { title: "Keeps running unchanged", text: "" },
};

/** What the user has to agree to: the changes, or that a failed upgrade is tried again; otherwise nothing. */
export function toAgree({ changes, repeats }: DeployPlan): "changes" | "again" | "nothing" {
  if (changes.some((each) => each.change !== "unchanged")) return "changes";
  return repeats ? "again" : "nothing";
}

/** The changes by kind, the most serious first. Unchanged elements are only counted. */
export function grouped(changes: readonly DeployChange[]): { change: Change; elements: DeployChange[] }[] {
  return ORDER.map((change) => ({
    change,
    elements: changes.filter((each) => each.change === change),
  })).filter(({ elements }) => elements.length > 0);
}

/** What a section says of all its elements. Views keep nothing: there is nothing of theirs to warn about. */
export function sectionText(change: Change, elements: readonly DeployChange[]): string {
  return elements.every(({ view }) => view)
    ? "Only the dashboard shows it. Nothing on the nodes changes."
    : CHANGE_WORDS[change].text;
}

/** What is there now, as a sentence. */
export const nowWords = (status: string | undefined): string =>
  status === "ended"
    ? "The pipeline has read its recordings to their end."
    : status === "running"
      ? "The pipeline is running."
      : "The pipeline is deployed.";

/** "3 elements keep running unchanged."; empty when there are none. */
export function untouched(changes: readonly DeployChange[]): string {
  const n = changes.filter((each) => each.change === "unchanged").length;
  if (n === 0) return "";
  return n === 1 ? "1 element keeps running unchanged." : `${plural(n, "element")} keep running unchanged.`;
}

/**
 * Why it cannot be deployed as it is; null when it can. `agreed`: the elements whose user takes the loss of their
 * state; `name`: what people call an element.
 */
export function deployRefusal(
  changes: readonly DeployChange[],
  agreed: ReadonlySet<string> = new Set(),
  name: (id: string) => string = (id) => id,
): string | null {
  const named = (which: (each: DeployChange) => boolean) =>
    listed(changes.filter(which).map((each) => name(each.element)));
  const wrong = named((each) => each.change === "incompatible");
  if (wrong) return `${wrong} cannot take over from the running pipeline: see above what to do.`;
  const open = named((each) => each.change === "restart" && !agreed.has(each.element));
  if (open) return `Tick the box to agree: ${open} may lose the state. Or take the change back.`;
  const homeless = named((each) => !!each.problem && !each.waits);
  return homeless ? `No node can take ${homeless}: the reason is above.` : null;
}

/** Whether this is a first deployment, so that nothing can change yet. */
export const isFirst = (changes: readonly DeployChange[]): boolean =>
  changes.length > 0 && changes.every((each) => each.change === "added");

/** Why an element has no node, as a clause. The server says it of the element ("is pinned to …") or of the nodes. */
export const problemWords = (problem: string): string =>
  problem.startsWith("is ") ? `it ${problem}` : problem;
