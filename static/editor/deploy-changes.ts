/** What a deployment will do to a pipeline that runs, as told before it is done. Pure. */
import { plural } from "../shared/format";
import type { DeployChange, DeployPlan } from "../shared/types";

type Change = DeployChange["change"];

/** The order in which a person wants to know. */
const ORDER: readonly Change[] = ["incompatible", "upgraded", "added", "removed"];

export const CHANGE_WORDS: Record<Change, { title: string; text: string }> = {
  incompatible: {
    title: "Does not fit what runs",
    text: "Take these changes back, or undeploy the pipeline and deploy it anew: then it begins without the state it has now.",
  },
  upgraded: {
    title: "Starts again with its state",
    text: "It stops after its running batch and goes on where it was, on the same node. Nothing is lost or repeated; output pauses for a few seconds.",
  },
  added: { title: "Comes", text: "" },
  removed: { title: "Goes", text: "" },
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

/** Why it cannot be deployed as it is; null when it can. */
export function deployRefusal(changes: readonly DeployChange[]): string | null {
  const wrong = changes.filter((each) => each.change === "incompatible").map((each) => each.element);
  if (wrong.length === 0) return null;
  return `${wrong.join(", ")} cannot take over from what runs: see above what to do.`;
}
