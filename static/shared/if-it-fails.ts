/** What would come of a node's elements if it died now, in words. Pure. */
import { basisWords, roughly, RESTORED } from "./forecast";
import { bytes } from "./format";
import type { GroupAfter, NodeFailure } from "./types";

/** How it goes on at its target; why it does not. */
export function afterWords(group: GroupAfter): string {
  const { target, way, reason, by_itself } = group;
  if (target === null || way === null) return `Stands still: ${reason ?? "no node can take it"}.`;
  const how = way === "hot-standby" ? "its hot standby takes over" : checkpointWords(group.bytes);
  return by_itself ? `By itself: ${how}.` : `When somebody restores it (${reason ?? "by hand"}): ${how}.`;
}

function checkpointWords(toFetch: number | null): string {
  if (toFetch === null) return "it begins from its newest checkpoint";
  return toFetch === 0
    ? "its newest checkpoint lies there already"
    : `its newest checkpoint is fetched, ${bytes(toFetch)}`;
}

/** Until it runs there again, and what that is known from; null: it goes nowhere. */
export function afterTime(group: GroupAfter, silence_s: number): { value: string; note: string } | null {
  const { expected, target, way } = group;
  if (!expected || target === null || way === null) return null;
  const name = group.titles.join(", ");
  const found = group.by_itself ? silence_s * 1000 : 0;
  const first = group.by_itself
    ? `With the ${silence_s} s until the silence is noticed. `
    : "From the order to restore it. ";
  return {
    value: roughly(expected.ms + found),
    note: first + basisWords(expected, name, target, RESTORED[way]),
  };
}

/** One sentence for all of it. */
export function failureWords(node: string, { groups, silence_s }: NodeFailure): string {
  const standing = groups.filter((group) => group.target === null).length;
  const byHand = groups.filter((group) => group.target !== null && !group.by_itself).length;
  const first = `If ${node} died now, that would be noticed after ${silence_s} s.`;
  if (!standing && !byHand)
    return `${first} Everything would go on elsewhere by itself; nothing committed is lost.`;
  const parts = [
    standing ? `${count(standing)} would stand still until a node can take what it ran` : "",
    byHand ? `${count(byHand)} would wait for somebody to restore it` : "",
  ].filter(Boolean);
  return `${first} Of these, ${parts.join(", and ")}; nothing committed is lost.`;
}

const count = (groups: number): string => (groups === 1 ? "one" : String(groups));
