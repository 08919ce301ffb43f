/** Where a draft pins its elements while running elements are moved. Pure. */
import { listed } from "../shared/format";
import type { PipelineDocument, PipelineItem } from "../shared/types";
import { elementsOf } from "../shared/document";
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
  const placed = new Set(elementsOf(other).flatMap(({ id, ui }) => (ui ? id : [])));
  const elements = elementsOf(document).map((element) =>
    element.ui && !placed.has(element.id) ? { ...element, ui: null } : element,
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

/**
 * The elements that run on another node than the draft pins them to: a mark and its meaning; null when
 * there are none.
 */
export function elsewhereWords(
  elsewhere: PipelineItem["elsewhere"] | undefined,
  nameOf: (id: string) => string,
): { mark: string; text: string } | null {
  const [first] = elsewhere ?? [];
  if (!elsewhere || !first) return null;
  const each = elsewhere.map(
    ({ element, pinned, node }) => `${nameOf(element)} runs on ${node}, and the draft pins it to ${pinned}.`,
  );
  return {
    mark:
      elsewhere.length === 1
        ? `${nameOf(first.element)} runs elsewhere`
        : `${elsewhere.length} run elsewhere`,
    text: `${each.join(" ")} Deploying changes does not move running elements: migrate them, or change their nodes in the draft.`,
  };
}
