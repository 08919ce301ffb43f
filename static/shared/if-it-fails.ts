/** What would happen to a node's elements if the node failed now, in words. Pure. */
import { basisWords, roughly, RESTORED } from "./forecast";
import { bytes } from "./format";
import type { GroupAfter, NodeFailure } from "./types";

/** How a group continues on its target, or why it does not. */
export function afterWords(group: GroupAfter): string {
  const { target, way, reason, by_itself } = group;
  if (target === null || way === null) return `It does not run: ${reason ?? "no node can take it"}.`;
  const how = way === "hot-standby" ? "its hot standby takes over" : checkpointWords(group.bytes);
  return by_itself
    ? `Automatically: ${how}.`
    : `Only when somebody restores it (${reason ?? "by hand"}): ${how}.`;
}

function checkpointWords(toFetch: number | null): string {
  if (toFetch === null) return "it starts from its newest checkpoint";
  return toFetch === 0
    ? "its newest checkpoint is there already"
    : `its newest checkpoint is fetched, ${bytes(toFetch)}`;
}

/** The time until it runs again, and how that is known; null when no node takes it. */
export function afterTime(group: GroupAfter, silence_s: number): { value: string; note: string } | null {
  const { expected, target, way } = group;
  if (!expected || target === null || way === null) return null;
  const name = group.titles.join(", ");
  const found = group.by_itself ? silence_s * 1000 : 0;
  const first = group.by_itself
    ? `Including the ${silence_s} s until the failure is noticed. `
    : "Counted from the order to restore it. ";
  return {
    value: roughly(expected.ms + found),
    note: first + basisWords(expected, name, target, RESTORED[way]),
  };
}

/** One sentence for all of it. */
export function failureWords(node: string, { groups, silence_s }: NodeFailure): string {
  const standing = groups.filter((group) => group.target === null).length;
  const byHand = groups.filter((group) => group.target !== null && !group.by_itself).length;
  const first = `If ${node} failed now, this would be noticed after ${silence_s} s.`;
  if (!standing && !byHand)
    return `${first} Everything would continue on other nodes automatically, and nothing committed would be lost.`;
  const parts = [
    standing
      ? `${count(standing)} would not run until a node can take ${standing === 1 ? "it" : "them"}`
      : "",
    byHand ? `${count(byHand)} would wait until somebody restores ${byHand === 1 ? "it" : "them"}` : "",
  ].filter(Boolean);
  return `${first} Of its groups, ${parts.join(", and ")}. Nothing committed would be lost.`;
}

const count = (groups: number): string => (groups === 1 ? "one" : String(groups));
