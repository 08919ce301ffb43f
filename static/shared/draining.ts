/** What is shown about a node that is being emptied, and about the elements on it. Pure. */
import { plural, toTheSecond } from "./format";
import { nameOf } from "./status";
import type { ClusterNode, LiveElement } from "./types";

/** "1 of 3 groups moved; power goes to edge-b now." */
export function drainWords(
  drain: NonNullable<ClusterNode["drain"]>,
  elements: Record<string, LiveElement[]>,
): string {
  const { moved, total, moving } = drain;
  if (total === 0) return "Nothing is left to move.";
  const element = moving && elements[moving.pipeline]?.find((each) => each.id === moving.element);
  const name = element ? nameOf(element) : moving?.element;
  return `${moved} of ${plural(total, "group")} moved${moving ? `; ${name} is moving to ${moving.target}` : ""}.`;
}

/** "leaving: 2 elements to move, until 14:03:10", of a node that was told to stop. */
export function leavingWords(node: Pick<ClusterNode, "elements" | "leaving_until">): string {
  if (!node.leaving_until) return "";
  const left = node.elements.filter((element) => element.role === "owner").length;
  return `leaving: ${plural(left, "element")} to move, until ${toTheSecond(Date.parse(node.leaving_until))}`;
}

/** The role of a node's copy of an element in one word, and how it is doing. */
export interface Hosted {
  role: string;
  status: string;
  /** in place of the status's own word */
  word?: string;
}

/** An element has one state, and that is its owner's: a copy that is left behind does not run. */
export function hosted(role: string, element: LiveElement | undefined, node: string): Hosted {
  if (role === "owner" || !element) return { role, status: element?.status ?? "" };
  if (role === "standby") return { role, status: "standby", word: "follows" };
  if (element.node === node) return { role, status: element.status };
  return { role: "left behind", status: "stopped", word: `now runs on ${element.node ?? "no node"}` };
}
