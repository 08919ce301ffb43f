/** Changes of a pipeline document. Pure: each gives a new document, or the same one when nothing changes. */
import {
  type PortRef,
  elementsOf,
  findElement,
  formatReference,
  groupsOf,
  parseReference,
  placeOf,
} from "../shared/document";
import { NAME_MAX } from "../shared/names";
import type { DocElement, DocGroup, Operator, PipelineDocument } from "../shared/types";
import { besideOffset, freePlace, type Point } from "./places";

function withElements(document: PipelineDocument, elements: DocElement[]): PipelineDocument {
  return { ...document, spec: { ...document.spec, elements } };
}

function withGroups(document: PipelineDocument, groups: DocGroup[]): PipelineDocument {
  const { groups: _, ...spec } = document.spec ?? {};
  return { ...document, spec: groups.length ? { ...spec, groups } : spec };
}

/** A name like `base` that nobody has: base, base-2, base-3 … */
export function freshId(taken: Iterable<string>, base: string): string {
  const used = new Set(taken);
  const clean =
    base
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, "-")
      .replace(/^-+|-+$/g, "")
      .slice(0, NAME_MAX - 4) || "element";
  if (!used.has(clean)) return clean;
  for (let number = 2; ; number += 1) {
    if (!used.has(`${clean}-${number}`)) return `${clean}-${number}`;
  }
}

/** The places of the cards. Elements without a place are left out. */
const placesOf = (elements: readonly DocElement[]): Point[] =>
  elements.flatMap((element) => placeOf(element) ?? []);

export function addElement(
  document: PipelineDocument,
  operator: Operator,
  at: Point,
): { document: PipelineDocument; id: string } {
  const id = freshId(
    elementsOf(document).map((element) => element.id),
    operator.type,
  );
  const element: DocElement = {
    id,
    type: operator.type,
    params: defaultParams(operator),
    ui: freePlace(placesOf(elementsOf(document)), at),
  };
  return { document: withElements(document, [...elementsOf(document), element]), id };
}

/** The defaults of the schema. The user fills in the rest, with the example as placeholders. */
export function defaultParams(operator: Operator): Record<string, unknown> {
  const properties = (operator.params_schema.properties ?? {}) as Record<string, { default?: unknown }>;
  const given = Object.entries(properties).filter(
    ([, property]) => property.default !== undefined && property.default !== null,
  );
  return Object.fromEntries(given.map(([name, property]) => [name, structuredClone(property.default)]));
}

export function changeElement(
  document: PipelineDocument,
  id: string,
  change: Partial<DocElement>,
): PipelineDocument {
  const mine = "params" in change || "type" in change;
  return withElements(
    document,
    elementsOf(document).map((element) => {
      if (element.id !== id) return element;
      const changed = trimmed({ ...element, ...change });
      return mine ? withoutReplace(changed) : changed;
    }),
  );
}

/** Removes the mark of a template: the user has changed the element, or keeps it as it is. */
export function withoutReplace(element: DocElement): DocElement {
  if (!element.ui?.replace) return element;
  const { replace: _, ...ui } = element.ui;
  return { ...element, ui };
}

/** Keeps an element that came with a template, without the note that asks to replace it. */
export function keepAsItIs(document: PipelineDocument, id: string): PipelineDocument {
  return withElements(
    document,
    elementsOf(document).map((element) => (element.id === id ? withoutReplace(element) : element)),
  );
}

/** Leaves out empty fields, so that a document stays as short as a hand-written one. */
function trimmed(element: DocElement): DocElement {
  const copy = { ...element };
  if (!copy.title) delete copy.title;
  if (!copy.node) delete copy.node;
  if (!copy.site) delete copy.site;
  if (!copy.apart?.length) delete copy.apart;
  if (copy.inputs && Object.keys(copy.inputs).length === 0) delete copy.inputs;
  return copy;
}

export function moveElements(document: PipelineDocument, places: Record<string, Point>): PipelineDocument {
  const moved = elementsOf(document).some(({ id, ui }) => {
    const place = places[id];
    return place && (ui?.x !== place.x || ui?.y !== place.y);
  });
  if (!moved) return document;
  return withElements(
    document,
    elementsOf(document).map((element) => {
      const place = places[element.id];
      return place ? { ...element, ui: { ...element.ui, ...place } } : element;
    }),
  );
}

export function removeElements(document: PipelineDocument, ids: Iterable<string>): PipelineDocument {
  const gone = new Set(ids);
  const kept = elementsOf(document)
    .filter((element) => !gone.has(element.id))
    .map((element) => withoutInputs(element, (reference) => gone.has(parseReference(reference).element)))
    .map((element) =>
      element.apart?.some((id) => gone.has(id))
        ? trimmed({ ...element, apart: element.apart.filter((id) => !gone.has(id)) })
        : element,
    );
  const groups = groupsOf(document)
    .map((group) => ({ ...group, elements: group.elements.filter((id) => !gone.has(id)) }))
    .filter((group) => group.elements.length > 0);
  return withGroups(withElements(document, kept), groups);
}

function withoutInputs(element: DocElement, drop: (reference: string, port: string) => boolean): DocElement {
  const inputs = Object.entries(element.inputs ?? {});
  const kept = inputs.filter(([port, reference]) => !drop(reference, port));
  return kept.length === inputs.length ? element : trimmed({ ...element, inputs: Object.fromEntries(kept) });
}

export function connect(document: PipelineDocument, from: PortRef, to: PortRef): PipelineDocument {
  const target = findElement(document, to.element);
  if (!target) return document;
  return changeElement(document, to.element, {
    inputs: { ...target.inputs, [to.port]: formatReference(from) },
  });
}

export function disconnect(document: PipelineDocument, to: PortRef): PipelineDocument {
  return withElements(
    document,
    elementsOf(document).map((element) =>
      element.id === to.element ? withoutInputs(element, (_, port) => port === to.port) : element,
    ),
  );
}

/** Rename an element and all that names it. */
export function renameElement(document: PipelineDocument, id: string, next: string): PipelineDocument {
  if (id === next) return document;
  const renamed = elementsOf(document).map((element) => {
    const inputs = Object.entries(element.inputs ?? {}).map(([port, reference]) => {
      const from = parseReference(reference);
      return [port, from.element === id ? formatReference({ ...from, element: next }) : reference] as const;
    });
    const changed = inputs.some(([port, reference]) => element.inputs?.[port] !== reference);
    const drawn = element.params?.limit_of === id;
    if (element.id !== id && !changed && !drawn && !element.apart?.includes(id)) return element;
    return trimmed({
      ...element,
      ...(drawn && { params: { ...element.params, limit_of: next } }),
      ...(element.apart && { apart: element.apart.map((other) => (other === id ? next : other)) }),
      id: element.id === id ? next : element.id,
      inputs: Object.fromEntries(inputs),
    });
  });
  const groups = groupsOf(document).map((group) => ({
    ...group,
    elements: group.elements.map((element) => (element === id ? next : element)),
  }));
  return withGroups(withElements(document, renamed), groups);
}

/** Elements to carry elsewhere; connections among them stay, others are cut. */
export function copyElements(document: PipelineDocument, ids: Iterable<string>): DocElement[] {
  const chosen = new Set(ids);
  return elementsOf(document)
    .filter((element) => chosen.has(element.id))
    .map((element) =>
      withoutInputs(structuredClone(element), (reference) => !chosen.has(parseReference(reference).element)),
    )
    .map((element) => trimmed({ ...element, apart: element.apart?.filter((id) => chosen.has(id)) }));
}

/** Places copies where the originals were if that is free, else beside them, and never over another card. */
export function pasteElements(document: PipelineDocument, copied: DocElement[]) {
  const offset = besideOffset(placesOf(elementsOf(document)), placesOf(copied));
  const taken = elementsOf(document).map((element) => element.id);
  const names = new Map<string, string>();
  for (const element of copied) {
    const id = freshId(taken, element.id.replace(/-\d+$/, ""));
    names.set(element.id, id);
    taken.push(id);
  }
  const fresh = copied.map((element) => copyOf(element, names, offset));
  const pasted = withElements(document, [...elementsOf(document), ...fresh]);
  return { document: pasted, ids: [...names.values()], offset };
}

/** Sets whether the two may share a node. It is written only once, at the element `id`. */
export function setApart(
  document: PipelineDocument,
  id: string,
  other: string,
  apart: boolean,
): PipelineDocument {
  const without = (element: DocElement, gone: string) =>
    (element.apart ?? []).filter((each) => each !== gone);
  return withElements(
    document,
    elementsOf(document).map((element) => {
      if (element.id === id)
        return trimmed({ ...element, apart: [...without(element, other), ...(apart ? [other] : [])] });
      return element.id === other && element.apart
        ? trimmed({ ...element, apart: without(element, id) })
        : element;
    }),
  );
}

/**
 * A copy under its new name, beside the original. References to other copied elements lead to their
 * copies. A copy of a copy at a site is an ordinary element: a site has only one copy.
 */
function copyOf(element: DocElement, names: ReadonlyMap<string, string>, offset: Point): DocElement {
  const { copy_of: _, ...own } = element;
  const place = placeOf(element);
  const inputs = Object.entries(element.inputs ?? {}).map(([port, reference]) => {
    const from = parseReference(reference);
    return [port, formatReference({ ...from, element: names.get(from.element) ?? from.element })];
  });
  const alarm = names.get(String(element.params?.limit_of));
  return trimmed({
    ...structuredClone(own),
    ...(alarm && { params: { ...structuredClone(element.params), limit_of: alarm } }),
    ...(element.apart && { apart: element.apart.map((id) => names.get(id) ?? id) }),
    id: names.get(element.id) ?? element.id,
    inputs: Object.fromEntries(inputs) as Record<string, string>,
    ui: { x: (place?.x ?? 0) + offset.x, y: (place?.y ?? 0) + offset.y },
  });
}

/** "Run as one": the elements leave the groups they were in. */
export function groupElements(document: PipelineDocument, ids: string[]): PipelineDocument {
  const chosen = new Set(ids);
  const rest = groupsOf(document)
    .map((group) => ({ ...group, elements: group.elements.filter((id) => !chosen.has(id)) }))
    .filter((group) => group.elements.length > 0);
  // a group's name shares topics' name space with the elements', so it must differ from both
  const taken = [...rest.map((group) => group.id), ...elementsOf(document).map((element) => element.id)];
  const ordered = elementsOf(document)
    .map((element) => element.id)
    .filter((id) => chosen.has(id));
  return withGroups(document, [
    ...rest,
    { id: freshId(taken, `${ordered[0] ?? "group"}-group`), elements: ordered },
  ]);
}

export function ungroup(document: PipelineDocument, ids: Iterable<string>): PipelineDocument {
  const chosen = new Set(ids);
  return withGroups(
    document,
    groupsOf(document).filter((group) => !group.elements.some((id) => chosen.has(id))),
  );
}
