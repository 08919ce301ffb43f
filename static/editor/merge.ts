/** Two people changed the same draft: bring both changes together where they do not touch the same thing. Pure. */
import type { DocElement, DocGroup, PipelineDocument } from "../shared/types";
import { elementsOf, groupsOf } from "../shared/document";
import { freshId, renameElement } from "./edits";
import { mergeNotes, notesOf, withNotes } from "./notes/notes";

export type Side = "mine" | "theirs";

interface Both<T> {
  was: T | undefined;
  mine: T | undefined;
  theirs: T | undefined;
}

/** What both changed, differently: somebody has to choose. */
export type Conflict = { key: string } & (
  | ({
      kind: "element";
      id: string;
      /** the fields that both changed; empty when one side removed the element or changed its type */
      fields: string[];
    } & Both<DocElement>)
  | ({ kind: "group"; id: string } & Both<DocGroup>)
  /** the groups cannot be taken one by one: an element would be in two of them */
  | ({ kind: "groups" } & Both<DocGroup[]>)
  | ({ kind: "metadata" } & Both<PipelineDocument["metadata"]>)
);

export interface Merge {
  document: PipelineDocument;
  conflicts: Conflict[];
  /** elements that both added under one id: mine has another one in the document, [what it was, what it is] */
  renamed: [string, string][];
}

/** The chosen side by the conflict's key. A missing key means mine. */
export type Choices = Readonly<Record<string, Side>>;

const same = (a: unknown, b: unknown) => stable(a) === stable(b);

/** JSON with sorted keys: the server may give the keys in another order than we sent them. */
export function stable(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    part && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(
          Object.entries(part)
            .filter(([, each]) => each !== null)
            .sort(([a], [b]) => (a < b ? -1 : 1)),
        )
      : part,
  );
}

/** The value if only one side changed it; null if both changed it differently. */
function settled<T>(
  { was, mine, theirs }: Both<T>,
  alike: (a: T | undefined, b: T | undefined) => boolean = same,
): { value: T | undefined } | null {
  if (alike(mine, theirs) || alike(theirs, was)) return { value: mine };
  return alike(mine, was) ? { value: theirs } : null;
}

export function mergeDocuments(
  base: PipelineDocument,
  ours: PipelineDocument,
  theirs: PipelineDocument,
  choices: Choices = {},
): Merge {
  const { document: yours, renamed } = apart(base, ours, theirs);
  const conflicts: Conflict[] = [];
  const chosen = <T>(conflict: Conflict, { mine, theirs: other }: Both<T>): T | undefined => {
    conflicts.push(conflict);
    return choices[conflict.key] === "theirs" ? other : mine;
  };
  const elements = sides(base, yours, theirs, elementsOf).flatMap(
    ([id, both]) => mergeElement(id, both, chosen) ?? [],
  );
  const groups = mergeGroups(base, yours, theirs, chosen, new Set(elements.map((element) => element.id)));
  const all = { was: base.metadata, mine: yours.metadata, theirs: theirs.metadata };
  const metadata =
    (settled(all) ?? { value: chosen({ key: "metadata", kind: "metadata", ...all }, all) }).value ??
    yours.metadata;
  const { groups: _, ...spec } = yours.spec ?? {};
  const notes = mergeNotes(notesOf(base), notesOf(yours), notesOf(theirs));
  return {
    document: withNotes(
      { ...yours, metadata, spec: { ...spec, elements, ...(groups.length ? { groups } : {}) } },
      notes,
    ),
    conflicts,
    renamed,
  };
}

/** Two new elements that happen to have the same id: mine gets another one, and its readers follow it. */
function apart(
  base: PipelineDocument,
  yours: PipelineDocument,
  theirs: PipelineDocument,
): { document: PipelineDocument; renamed: [string, string][] } {
  const taken = [base, yours, theirs].flatMap((each) => [...elementsOf(each), ...groupsOf(each)]);
  const ids = new Set(taken.map(({ id }) => id));
  const renamed: [string, string][] = [];
  let document = yours;
  for (;;) {
    // one after the other: what reads the renamed one may differ from theirs only now
    const found = sides(base, document, theirs, elementsOf).find(
      ([, { was, mine, theirs: other }]) => !was && mine && other && !same(bare(mine), bare(other)),
    );
    if (!found) return { document, renamed };
    const [id] = found;
    const next = freshId(ids, id.replace(/-\d+$/, ""));
    ids.add(next);
    renamed.push([id, next]);
    document = renameElement(document, id, next);
  }
}

type Choose = <T>(conflict: Conflict, both: Both<T>) => T | undefined;

function sides<T extends { id: string }>(
  base: PipelineDocument,
  yours: PipelineDocument,
  theirs: PipelineDocument,
  of: (document: PipelineDocument) => T[],
): [string, Both<T>][] {
  const [was, mine, other] = [base, yours, theirs].map(
    (document) => new Map(of(document).map((each) => [each.id, each])),
  ) as [Map<string, T>, Map<string, T>, Map<string, T>];
  const ids = [...new Set([...mine.keys(), ...other.keys()])];
  return ids.map((id) => [id, { was: was.get(id), mine: mine.get(id), theirs: other.get(id) }]);
}

/** The place of an element on the canvas is never a conflict. */
function bare(element: DocElement | undefined): unknown {
  if (!element) return element;
  const { ui: _, ...rest } = element;
  return rest;
}

function mergeElement(id: string, both: Both<DocElement>, chosen: Choose): DocElement | undefined {
  const { was, mine, theirs } = both;
  const whole = settled(both, (a, b) => same(bare(a), bare(b)));
  const conflict = (fields: string[]): Conflict => ({
    key: `element ${id}`,
    kind: "element",
    id,
    fields,
    ...both,
  });
  if (!was || !mine || !theirs || mine.type !== theirs.type || was.type !== mine.type)
    return whole ? whole.value : chosen(conflict([]), both);
  const open: string[] = [];
  const merged = mergeParts({ was, mine, theirs }, "", open);
  // asked once, for all of its fields together
  return open.length ? chosen(conflict(open), { was, ...merged }) : merged.mine;
}

type Parts = Record<string, unknown>;

/**
 * Merges field by field, each input and parameter separately, once with my choices for the open ones and
 * once with theirs.
 */
function mergeParts<T extends object>(
  both: { was: T; mine: T; theirs: T },
  path: string,
  open: string[],
): { mine: T; theirs: T } {
  const [was, mine, theirs] = [both.was, both.mine, both.theirs] as [Parts, Parts, Parts];
  const found: { mine: Parts; theirs: Parts } = { mine: {}, theirs: {} };
  for (const key of new Set([...Object.keys(mine), ...Object.keys(theirs)])) {
    const field = { was: was[key], mine: mine[key], theirs: theirs[key] };
    let value: { mine: unknown; theirs: unknown } = { mine: field.mine, theirs: field.theirs };
    const one = settled(field);
    if (one) value = { mine: one.value, theirs: one.value };
    else if (key === "ui") value.mine = value.theirs = drawnAs(field.mine, field.theirs);
    else if (!path && (key === "params" || key === "inputs")) {
      const [a = {}, b = {}, c = {}] = [field.was, field.mine, field.theirs] as Parts[];
      value = mergeParts({ was: a, mine: b, theirs: c }, `${key}.`, open);
    } else open.push(path + key);
    if (value.mine !== undefined) found.mine[key] = value.mine;
    if (value.theirs !== undefined) found.theirs[key] = value.theirs;
  }
  return found as { mine: T; theirs: T };
}

/** My place of the element. It stays marked as "to be replaced" only while both sides have the mark. */
function drawnAs(mine: unknown, theirs: unknown): unknown {
  const [a, b] = [mine, theirs] as DocElement["ui"][];
  if (!a?.replace || b?.replace) return a;
  const { replace: _, ...place } = a;
  return place;
}

function mergeGroups(
  base: PipelineDocument,
  yours: PipelineDocument,
  theirs: PipelineDocument,
  chosen: Choose,
  elements: ReadonlySet<string>,
): DocGroup[] {
  const each = sides(base, yours, theirs, groupsOf);
  const open = each.filter(([, both]) => !settled(both));
  const taken = (side: Side) =>
    each.flatMap(([, both]) => (settled(both) ?? { value: both[side] }).value ?? []);
  let groups: DocGroup[];
  if (overlap(taken("mine")) || overlap(taken("theirs"))) {
    const all = { was: groupsOf(base), mine: groupsOf(yours), theirs: groupsOf(theirs) };
    groups = chosen({ key: "groups", kind: "groups", ...all }, all) ?? [];
  } else {
    const asked = new Map(
      open.map(([id, both]) => [id, chosen({ key: `group ${id}`, kind: "group", id, ...both }, both)]),
    );
    groups = each.flatMap(([id, both]) => (settled(both) ?? { value: asked.get(id) }).value ?? []);
  }
  return groups
    .map((group) => ({ ...group, elements: group.elements.filter((id) => elements.has(id)) }))
    .filter((group) => group.elements.length > 0);
}

function overlap(groups: DocGroup[]): boolean {
  const members = groups.flatMap((group) => group.elements);
  return new Set(members).size < members.length;
}
