/** What moves together, and how a hanging move is described. Pure. */
import { listed } from "../../shared/format";
import type { LiveElement } from "../../shared/types";
import { groupsOf } from "../../shared/document";
import type { PipelineDocument } from "../../shared/types";

/** Elements that run as one: an order for one of them moves all. */
export interface Unit {
  /** the element for which the move is ordered */
  lead: string;
  members: readonly string[];
}

/** The units of a selection, in the order of `order`, which is that of the streams. */
export function unitsOf(
  document: PipelineDocument,
  ids: Iterable<string>,
  order: (id: string) => number,
): Unit[] {
  const groups = groupsOf(document);
  const found = new Map<string, Unit>();
  for (const id of [...ids].sort((a, b) => order(a) - order(b))) {
    const group = groups.find(({ elements }) => elements.includes(id));
    const key = group ? `group ${group.id}` : `element ${id}`;
    if (!found.has(key)) found.set(key, { lead: id, members: group ? group.elements : [id] });
  }
  return [...found.values()];
}

/** "power and alarm" */
export const unitWords = (unit: Unit, nameOf: (id: string) => string): string =>
  listed(unit.members.map(nameOf));

/** Whether an element is to be seen in a lane of its own: views and what is not deployed stay where they are. */
export const movable = (element: LiveElement | undefined): boolean =>
  element !== undefined && element.node !== null && element.status !== "view" && element.status !== "draft";
