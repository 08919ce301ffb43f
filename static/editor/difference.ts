/** What differs between two documents, said in the words of the forms. Pure. */
import type { DocElement, DocGroup, Operator, PipelineDocument } from "../shared/types";
import {
  displayName,
  elementsOf,
  findElement,
  groupsOf,
  parseReference,
  pipelineTitle,
  type PortRef,
} from "../shared/document";
import { fieldsOf, words } from "./form/schema";
import { stable } from "./merge";

type Operators = ReadonlyMap<string, Operator>;

/** One thing that changed; null on the side that does not have it. */
export interface ValueChange {
  what: string;
  from: string | null;
  to: string | null;
}

export type Mark = "added" | "changed" | "removed";

export interface ElementDifference {
  id: string;
  name: string;
  change: Mark;
  changes: ValueChange[];
}

export interface Difference {
  elements: ElementDifference[];
  /** of the pipeline itself: its description, what runs as one */
  pipeline: ValueChange[];
}

/** A field of an element by a key: "title", "inputs.in", "params.size_s". Where it was drawn is "ui". */
export function fieldsByKey(element: DocElement): Map<string, unknown> {
  const found = new Map<string, unknown>();
  for (const [key, value] of Object.entries(element)) {
    if (key === "id" || value == null) continue;
    if (key === "inputs" || key === "params") {
      for (const [name, inner] of Object.entries(value as Record<string, unknown>))
        if (inner != null) found.set(`${key}.${name}`, inner);
    } else found.set(key, value);
  }
  return found;
}

const TITLES: Record<string, string> = {
  title: "Name",
  type: "Type",
  node: "Node",
  site: "Site",
  apart: "Never on one node with",
  latency_ms: "Latency target, ms",
  copy_of: "Copy of",
};

/** The name of a field, and its value in words; null when it has none. */
export function said(
  key: string,
  value: unknown,
  operator: Operator | undefined,
  nameOf: (id: string) => string,
): { what: string; value: string | null } {
  const [kind = "", name = ""] = key.split(/\.(.*)/s);
  if (kind === "inputs") {
    const what = (operator?.inputs.length ?? 1) > 1 ? `Input ${name}` : "Input";
    if (typeof value !== "string") return { what, value: null };
    const { element, port } = parseReference(value);
    return { what, value: nameOf(element) + (port === "out" ? "" : `, ${port}`) };
  }
  if (kind === "params") {
    const [title, unit] = titleOf(name, operator);
    return { what: title, value: value === undefined ? null : inWords(value, unit) };
  }
  return { what: TITLES[key] ?? words(key), value: value === undefined ? null : inWords(value) };
}

/** Units as they stand behind a number. */
const SHORT: Partial<Record<string, string>> = {
  seconds: "s",
  milliseconds: "ms",
  microseconds: "µs",
  percent: "%",
};

function titleOf(name: string, operator: Operator | undefined): [string, string] {
  const schema = operator?.params_schema ?? {};
  const field = fieldsOf(schema, schema, "params").find((each) => each.name === name);
  const title = field?.title ?? words(name);
  const [, stem, unit] = /^(.+), in (\w+)$/.exec(title) ?? [];
  return stem && unit ? [stem, SHORT[unit] ?? unit] : [title, ""];
}

/** A value without a bracket or a brace. */
export function inWords(value: unknown, unit = ""): string {
  if (value === null || value === undefined) return "not set";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return unit ? `${value} ${unit}` : String(value);
  if (typeof value === "string") return value === "" ? "empty" : value;
  if (Array.isArray(value)) {
    const nested = value.some((each) => each !== null && typeof each === "object");
    return value.map((each) => inWords(each, unit)).join(nested ? "; " : ", ") || "none";
  }
  return (
    Object.entries(value as Record<string, unknown>)
      .filter(([, inner]) => inner !== null)
      .map(([key, inner]) => `${words(key).toLowerCase()} ${inWords(inner)}`)
      .join(", ") || "none"
  );
}

/** For a list, only the items that one side alone has are shown. */
function withoutCommon(from: unknown, to: unknown): [unknown, unknown] {
  if (!Array.isArray(from) || !Array.isArray(to)) return [from, to];
  const [left, right] = [from.map(stable), to.map(stable)];
  const gone = from.filter((_, at) => !right.includes(left[at] ?? ""));
  const come = to.filter((_, at) => !left.includes(right[at] ?? ""));
  if (gone.length === 0 && come.length === 0) return [from, to]; // another order
  return [gone.length ? gone : undefined, come.length ? come : undefined];
}

/** What was changed of an element, field by field; where it was drawn does not count. */
export function elementChanges(
  before: DocElement,
  after: DocElement,
  operators: Operators,
  nameOf: (id: string) => string,
): ValueChange[] {
  const [old, now] = [fieldsByKey(before), fieldsByKey(after)];
  const keys = [...new Set([...now.keys(), ...old.keys()])].filter((key) => key !== "ui");
  return keys.flatMap((key) => {
    if (stable(old.get(key)) === stable(now.get(key))) return [];
    const [from, to] = withoutCommon(old.get(key), now.get(key));
    const left = said(key, from, operators.get(before.type), nameOf);
    const right = said(key, to, operators.get(after.type), nameOf);
    return [{ what: right.what, from: left.value, to: right.value }];
  });
}

/** What people call an element, in whichever of the documents it is. */
export function namesIn(operators: Operators, ...documents: PipelineDocument[]): (id: string) => string {
  return (id) => {
    for (const document of documents) {
      const element = findElement(document, id);
      if (element) return displayName(element, operators.get(element.type));
    }
    return id;
  };
}

export function difference(
  before: PipelineDocument,
  after: PipelineDocument,
  operators: Operators,
): Difference {
  const nameOf = namesIn(operators, after, before);
  const old = new Map(elementsOf(before).map((element) => [element.id, element]));
  const now = new Set(elementsOf(after).map((element) => element.id));
  const told = (id: string, change: Mark, changes: ValueChange[] = []) => ({
    id,
    name: nameOf(id),
    change,
    changes,
  });
  const elements = elementsOf(after).flatMap((element) => {
    const was = old.get(element.id);
    if (!was) return [told(element.id, "added")];
    const changes = elementChanges(was, element, operators, nameOf);
    return changes.length ? [told(element.id, "changed", changes)] : [];
  });
  const removed = [...old.keys()].filter((id) => !now.has(id)).map((id) => told(id, "removed"));
  return { elements: [...elements, ...removed], pipeline: pipelineChanges(before, after, nameOf) };
}

function pipelineChanges(
  before: PipelineDocument,
  after: PipelineDocument,
  nameOf: (id: string) => string,
): ValueChange[] {
  const found: ValueChange[] = [];
  const [title, next] = [pipelineTitle(before), pipelineTitle(after)];
  if (title !== next) found.push({ what: "Name", from: title, to: next });
  const [from, to] = [descriptionOf(before), descriptionOf(after)];
  if (from !== to) found.push({ what: "Description", from, to });
  const [old, now] = [before, after].map((each) => new Map(groupsOf(each).map((group) => [group.id, group])));
  for (const id of new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])])) {
    const [was, is] = [groupWords(old?.get(id), nameOf), groupWords(now?.get(id), nameOf)];
    if (was !== is) found.push({ what: "Runs as one", from: was, to: is });
  }
  return [...found, ...noteChanges(before, after)];
}

/** What was written in notes and frames. Where they lie, and their colours, do not count. */
function noteChanges(before: PipelineDocument, after: PipelineDocument): ValueChange[] {
  const notes = (document: PipelineDocument) =>
    new Map((document.spec?.notes ?? []).map((note) => [note.id, note]));
  const [old, now] = [notes(before), notes(after)];
  return [...new Set([...now.keys(), ...old.keys()])].flatMap((id) => {
    const [was, is] = [old.get(id), now.get(id)];
    const [from, to] = [was, is].map((note) => (note ? inWords(note.text ?? "") : null));
    const what = (is ?? was)?.kind === "frame" ? "Frame" : "Note";
    return from === to ? [] : [{ what, from: from ?? null, to: to ?? null }];
  });
}

function descriptionOf(document: PipelineDocument): string | null {
  const { description } = document.metadata;
  return description ? inWords(description) : null;
}

export function groupWords(group: DocGroup | undefined, nameOf: (id: string) => string): string | null {
  return group ? group.elements.map(nameOf).join(", ") : null;
}

/** A stream that only one of two documents has. */
export interface StreamMark {
  from: PortRef;
  to: PortRef;
  mark: "added" | "removed";
}

/** The streams of a document by their ends. An input that reads from a missing element is left out. */
function streamsOf(document: PipelineDocument): Map<string, { from: PortRef; to: PortRef }> {
  const there = new Set(elementsOf(document).map((element) => element.id));
  const streams = elementsOf(document).flatMap((element) =>
    Object.entries(element.inputs ?? {}).map(([port, reference]) => ({
      from: parseReference(reference),
      to: { element: element.id, port },
    })),
  );
  return new Map(
    streams.filter(({ from }) => there.has(from.element)).map((stream) => [stable(stream), stream]),
  );
}

/** Streams that came and went; one whose end was drawn elsewhere did both. */
export function streamMarks(before: PipelineDocument, after: PipelineDocument): StreamMark[] {
  const [old, now] = [streamsOf(before), streamsOf(after)];
  return [
    ...[...now].flatMap(([key, ends]) => (old.has(key) ? [] : [{ ...ends, mark: "added" as const }])),
    ...[...old].flatMap(([key, ends]) => (now.has(key) ? [] : [{ ...ends, mark: "removed" as const }])),
  ];
}

/** A document with the elements that only the other one has, so that both can be drawn at once. */
export function withRemoved(document: PipelineDocument, before: PipelineDocument): PipelineDocument {
  const there = new Set(elementsOf(document).map((element) => element.id));
  const gone = elementsOf(before).filter((element) => !there.has(element.id));
  if (gone.length === 0) return document;
  return { ...document, spec: { ...document.spec, elements: [...elementsOf(document), ...gone] } };
}

/** "2 added, 1 changed" */
export function counted(found: Difference): string {
  const parts = (["added", "changed", "removed"] as const).flatMap((change) => {
    const n = found.elements.filter((each) => each.change === change).length;
    return n ? [`${n} ${change}`] : [];
  });
  if (found.pipeline.length) parts.push("the pipeline itself");
  return parts.join(", ");
}
