/** What a deployment will do, as told before it is done. Pure. */
import { listed, plural } from "../shared/format";
import type { DeployChange, DeployPlan } from "../shared/types";

type Change = DeployChange["change"];

/** The order in which a person wants to know. */
const ORDER: readonly Change[] = ["incompatible", "restart", "upgraded", "retuned", "added", "removed"];

export const CHANGE_WORDS: Record<Change, { title: string; text: string }> = {
  incompatible: {
    title: "Does not fit what runs",
    text: "Take these changes back, or undeploy the pipeline and deploy it anew: then it begins without the state it has now.",
  },
  restart: {
    title: "Cannot keep its state",
    text: "It alone starts again, with an empty state, and goes on in its input where it stands: no row is skipped or read twice. What is lost does not come back by deploying the former version.",
  },
  upgraded: {
    title: "Starts again with its state",
    text: "It stops after its running batch and goes on where it was, on the same node if no other is named. Nothing is lost or repeated; output pauses for a few seconds.",
  },
  retuned: {
    title: "Changes while it runs",
    text: "It is told at once, and does not stop.",
  },
  added: {
    title: "Is added",
    text: "It starts with an empty state and reads what its inputs still hold, then what comes. What runs is not touched.",
  },
  removed: {
    title: "Is removed",
    text: "It ends after its running batch, for good: its state, its streams and its checkpoints do not come back by deploying the former version. Download what it has written to files before.",
  },
  unchanged: { title: "Goes on untouched", text: "" },
};

/** What there is to agree to: the changes, or that an upgrade that failed is tried again; else nothing. */
export function toAgree({ changes, repeats }: DeployPlan): "changes" | "again" | "nothing" {
  if (changes.some((each) => each.change !== "unchanged")) return "changes";
  return repeats ? "again" : "nothing";
}

/** By kind, the most serious first; what does not change is only counted. */
export function grouped(changes: readonly DeployChange[]): { change: Change; elements: DeployChange[] }[] {
  return ORDER.map((change) => ({
    change,
    elements: changes.filter((each) => each.change === change),
  })).filter(({ elements }) => elements.length > 0);
}

/** "3 elements go on untouched."; empty: there are none. */
export function untouched(changes: readonly DeployChange[]): string {
  const n = changes.filter((each) => each.change === "unchanged").length;
  if (n === 0) return "";
  return n === 1 ? "1 element goes on untouched." : `${plural(n, "element")} go on untouched.`;
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
  if (wrong) return `${wrong} cannot take over from what runs: see above what to do.`;
  const open = named((each) => each.change === "restart" && !agreed.has(each.element));
  if (open) return `Tick that ${open} may lose its state, or take the change back.`;
  const homeless = named((each) => !!each.problem && !each.waits);
  return homeless ? `No node can take ${homeless}: see above why.` : null;
}

/** Whether it is a first deployment: there is nothing yet that could change. */
export const isFirst = (changes: readonly DeployChange[]): boolean =>
  changes.length > 0 && changes.every((each) => each.change === "added");
