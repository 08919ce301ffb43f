/** Where each column of a pipeline comes from, and where it goes: "where does `power` come from?". Pure. */
import { elementsOf, parseReference } from "../../shared/document";
import type {
  DocElement,
  JsonSchema,
  Operator,
  PipelineDocument,
  SchemaField,
  StreamSchema,
} from "../../shared/types";
import { tokensOf } from "../form/condition-tokens";
import { unwrap } from "../form/schema";

export type Schemas = Readonly<Record<string, StreamSchema>>;

/** What an element does with a column. */
export interface Step {
  element: string;
  /** renamed: it comes in here under another name; dropped: it is not among the columns that go on */
  what: "made" | "renamed" | "changed" | "passed" | "dropped" | "arrives";
  /** the columns that it is made from, or was named before; empty: its parameters do not say */
  from: string[];
  /** its parameters name the column */
  used: boolean;
}

/** All columns of one name. */
export interface ColumnStory {
  name: string;
  /** as it is made first */
  type: SchemaField["type"];
  unit: string | null;
  /** in the order in which rows flow */
  steps: Step[];
}

/** The columns of all elements, by the element that makes them first. */
export function columnStories(
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
  schemas: Schemas,
): ColumnStory[] {
  const stories = new Map<string, ColumnStory>();
  for (const element of inFlowOrder(elementsOf(document))) {
    const reads = fieldsOf(Object.values(element.inputs ?? {}).map(streamOf), schemas);
    const operator = operators.get(element.type);
    const ports = (operator?.outputs ?? []).map(({ name }) => `${element.id}.${name}`);
    const writes = fieldsOf(ports, schemas);
    const entries = operator ? entriesIn(operator.params_schema, element.params, operator.params_schema) : [];
    const known = ports.length === 0 || ports.some((port) => schemas[port]);
    for (const name of new Set([...reads.keys(), ...writes.keys()])) {
      const [read, written] = [reads.get(name), writes.get(name)];
      const field = (written ?? read)!;
      if (!stories.has(name))
        stories.set(name, { name, type: field.type, unit: field.unit ?? null, steps: [] });
      if (!known && !written) continue;
      const used = !!read && entries.some(({ columns }) => columns.includes(name));
      const step = stepOf(name, read, written, entries, reads);
      const what = step.what === "dropped" && ports.length === 0 ? "arrives" : step.what;
      stories.get(name)!.steps.push({ element: element.id, ...step, what, used });
    }
  }
  return [...stories.values()];
}

/** Those whose name has the words, with all that they are made from. */
export function found(stories: readonly ColumnStory[], words: string): ColumnStory[] {
  const search = words.trim().toLowerCase();
  return search ? stories.filter(({ name }) => name.toLowerCase().includes(search)) : [...stories];
}

/** What is true of a step, as people say it. */
export function stepWords({ what, from, used }: Step): string {
  const source = from.length > 0 ? ` from ${from.join(", ")}` : "";
  const words = {
    made: `made${source}`,
    renamed: `renamed${source}`,
    changed: "changed",
    passed: "passed on",
    dropped: "not passed on",
    arrives: "arrives",
  }[what];
  return used ? `${words}, used` : words;
}

const streamOf = (reference: string): string => {
  const { element, port } = parseReference(reference);
  return `${element}.${port}`;
};

function fieldsOf(streams: readonly string[], schemas: Schemas): Map<string, SchemaField> {
  return new Map(
    streams.flatMap((stream) => (schemas[stream]?.fields ?? []).map((field) => [field.name, field] as const)),
  );
}

/** Producers before their readers; elements in a circle come last. */
function inFlowOrder(elements: readonly DocElement[]): DocElement[] {
  const placed = new Set<string>();
  const ordered: DocElement[] = [];
  const ids = new Set(elements.map(({ id }) => id));
  let left = [...elements];
  while (left.length > 0) {
    const ready = left.filter((element) =>
      Object.values(element.inputs ?? {}).every((reference) => {
        const { element: from } = parseReference(reference);
        return placed.has(from) || !ids.has(from);
      }),
    );
    const next = ready.length > 0 ? ready : left;
    for (const element of next) placed.add(element.id);
    ordered.push(...next);
    left = left.filter(({ id }) => !placed.has(id));
  }
  return ordered;
}

/** The columns and the other texts of one object of the parameters, such as one of several aggregates. */
interface Entry {
  columns: string[];
  /** among them the names of new columns */
  texts: string[];
  /** how many parameters have a value */
  filled: number;
}

function entriesIn(property: JsonSchema, value: unknown, root: JsonSchema): Entry[] {
  const { schema } = unwrap(property, root);
  if (schema.type === "array" && Array.isArray(value))
    return value.flatMap((each) => entriesIn((schema.items ?? {}) as JsonSchema, each, root));
  if (!schema.properties || !value || typeof value !== "object") return [];
  const own: Entry = { columns: [], texts: [], filled: 0 };
  const nested: Entry[] = [];
  for (const [name, part] of Object.entries(schema.properties as Record<string, JsonSchema>)) {
    const given = (value as Record<string, unknown>)[name];
    if (given == null || given === "") continue;
    own.filled += 1;
    take(own, part, given, root);
    nested.push(...entriesIn(part, given, root));
  }
  return [own, ...nested];
}

function take(entry: Entry, property: JsonSchema, value: unknown, root: JsonSchema): void {
  const { schema } = unwrap(property, root);
  if (Array.isArray(value))
    for (const each of value) take(entry, (schema.items ?? {}) as JsonSchema, each, root);
  if (typeof value !== "string") return;
  if (schema.format === "column") entry.columns.push(value);
  else if (schema.format === "expression") entry.columns.push(...namesIn(value));
  else entry.texts.push(value);
}

/** The names in an expression, functions among them; none if it cannot be read yet. */
function namesIn(expression: string): string[] {
  try {
    const names = tokensOf(expression).filter(({ kind }) => kind === "name" || kind === "quoted");
    return names.map(({ text }) => text);
  } catch {
    return [];
  }
}

function stepOf(
  name: string,
  read: SchemaField | undefined,
  written: SchemaField | undefined,
  entries: readonly Entry[],
  reads: ReadonlyMap<string, SchemaField>,
): Pick<Step, "what" | "from"> {
  if (!written) return { what: "dropped", from: [] };
  const named = entries.find(({ texts, columns }) => texts.includes(name) && columns.length > 0);
  const from = [...new Set(named?.columns.filter((column) => reads.has(column)) ?? [])];
  const [only] = from;
  const isSame = from.length === 1 && reads.get(only!)?.type === written.type;
  // an entry of a column and a name alone only gives another name
  if (isSame && named?.filled === 2 && only !== name && bare(named, only!)) return { what: "renamed", from };
  if (read && !named)
    return { what: read.type === written.type && read.unit === written.unit ? "passed" : "changed", from };
  if (read) return { what: "changed", from };
  if (named) return { what: "made", from };
  // a join puts a prefix, which is a parameter, before the names that both sides have
  const prefixed = [...reads.keys()].find((column) =>
    entries.some(({ texts }) => texts.some((prefix) => prefix + column === name)),
  );
  return prefixed ? { what: "renamed", from: [prefixed] } : { what: "made", from: [] };
}

/** Whether the entry has the column as it is, not within a longer expression. */
const bare = ({ columns }: Entry, column: string): boolean => columns.length === 1 && columns[0] === column;
