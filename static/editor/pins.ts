/** Where a draft pins its elements while running elements are moved. Pure. */
import { listed } from "../shared/format";
import type { PipelineDocument, PipelineItem } from "../shared/types";
import { elementsOf, placeOf } from "../shared/document";
import { stable } from "./merge";

export interface Repin {
  id: string;
  from: string;
  to: string;
}

/**
 * The pins in which two documents differ if they differ in nothing else, otherwise null. In this way a
 * draft follows moves, and a user who edits it has nothing to choose.
 */
export function repinsOf(before: PipelineDocument, after: PipelineDocument): Repin[] | null {
  const now = new Map(elementsOf(after).map((element) => [element.id, element.node]));
  const repins = elementsOf(before).flatMap(({ id, node: from }) => {
    const to = now.get(id);
    return from && to && from !== to ? { id, from, to } : [];
  });
  if (repins.length === 0 || stable(repinned(placedAs(after, before), repins)) !== stable(after)) return null;
  return repins;
}

/** `document` without the places of elements that have none in `other`: they were only made up to be shown. */
function placedAs(other: PipelineDocument, document: PipelineDocument): PipelineDocument {
  const placed = new Set(elementsOf(other).flatMap((element) => (placeOf(element) ? element.id : [])));
  const elements = elementsOf(document).map((element) =>
    placeOf(element) && !placed.has(element.id) ? { ...element, ui: null } : element,
  );
  return { ...document, spec: { ...document.spec, elements } };
}

/**
 * The document with the new pins wherever it has exactly the old ones; the same object if it has none of
 * them.
 */
export function repinned(document: PipelineDocument, repins: readonly Repin[]): PipelineDocument {
  const wanted = new Map(repins.map((repin) => [repin.id, repin]));
  let changed = false;
  const elements = elementsOf(document).map((element) => {
    const repin = wanted.get(element.id);
    if (!repin || element.node !== repin.from) return element;
    changed = true;
    return { ...element, node: repin.to };
  });
  return changed ? { ...document, spec: { ...document.spec, elements } } : document;
}

/** "The draft now pins power to edge-b". */
export const repinWords = (repins: readonly Repin[], nameOf: (id: string) => string): string =>
  `The draft now pins ${listed(repins.map(({ id, to }) => `${nameOf(id)} to ${to}`))}`;

export type Elsewhere = PipelineItem["elsewhere"][number];

/** "3 run elsewhere"; the name where it is only one. */
export const elsewhereMark = (elsewhere: readonly Elsewhere[], nameOf: (id: string) => string): string =>
  elsewhere.length === 1 && elsewhere[0]
    ? `${nameOf(elsewhere[0].element)} runs elsewhere`
    : `${elsewhere.length} run elsewhere`;

/** Where elements belong. `count`: how many there are. */
export const homeWords = ({ home, pinned }: Elsewhere, count: number): string => {
  const they = count > 1 ? "they" : "it";
  return pinned ? `The draft pins ${count > 1 ? "them" : they} to ${home}` : `Before, ${they} ran on ${home}`;
};

/** One way home for all elements that run as one. */
export interface WayHome {
  /** the element that is moved, and all that move with it */
  element: string;
  together: Elsewhere[];
  /** why it is not possible now; null when it is */
  refused: string | null;
}

/**
 * The ways home. `groupOf`: what runs as one with an element; `refusal`: why an element cannot move to a
 * node now, or null.
 */
export function waysHome(
  elsewhere: readonly Elsewhere[],
  groupOf: (element: string) => string,
  refusal: (element: string, home: string) => string | null,
): WayHome[] {
  const ways = new Map<string, WayHome>();
  for (const each of elsewhere) {
    const key = `${groupOf(each.element)} ${each.home}`;
    const way = ways.get(key);
    if (way) way.together.push(each);
    else
      ways.set(key, {
        element: each.element,
        together: [each],
        refused: refusal(each.element, each.home),
      });
  }
  return [...ways.values()];
}
