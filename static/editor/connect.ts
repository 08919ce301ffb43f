/** Which ports may be joined, and why not. Pure. */
import type { Operator, PipelineDocument, StreamSchema } from "../shared/types";
import { elementsOf, findElement, parseReference, type PortRef } from "./document";

type Verdict = { ok: true; replaces: string | null } | { ok: false; reason: string };

const refuse = (reason: string): Verdict => ({ ok: false, reason });

export function judge(
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
  from: PortRef,
  to: PortRef,
  schemas: Readonly<Record<string, StreamSchema>> = {},
): Verdict {
  const source = findElement(document, from.element);
  const target = findElement(document, to.element);
  if (!source || !target) return refuse("One of the two elements is gone.");
  if (source.id === target.id) return refuse("An element cannot read its own output.");
  const out = operators.get(source.type);
  const into = operators.get(target.type);
  if (out && !out.outputs.some((port) => port.name === from.port))
    return refuse(`${source.id} has no output ${from.port}.`);
  if (into && !into.inputs.some((port) => port.name === to.port))
    return refuse(`${target.id} has no input ${to.port}.`);
  if (reaches(document, target.id, source.id)) {
    return refuse(`${target.id} already feeds ${source.id}: this would make a circle.`);
  }
  const missing = missingColumn(into, target.params ?? {}, schemas[`${from.element}.${from.port}`], to.port);
  if (missing) return refuse(missing);
  return { ok: true, replaces: target.inputs?.[to.port] ?? null };
}

/** Whether rows of `start` arrive, over any path, at `goal`. */
export function reaches(document: PipelineDocument, start: string, goal: string): boolean {
  const feeds = new Map<string, string[]>();
  for (const element of elementsOf(document)) {
    for (const reference of Object.values(element.inputs ?? {})) {
      const producer = parseReference(reference).element;
      feeds.set(producer, [...(feeds.get(producer) ?? []), element.id]);
    }
  }
  const seen = new Set<string>();
  const open = [start];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (id === goal) return true;
    if (seen.has(id)) continue;
    seen.add(id);
    open.push(...(feeds.get(id) ?? []));
  }
  return false;
}

/**
 * A column that the target's parameters already name and the stream does not have. Only where the
 * target has one input: with several, a parameter may mean any of them.
 */
function missingColumn(
  operator: Operator | undefined,
  params: Record<string, unknown>,
  schema: StreamSchema | undefined,
  port: string,
): string | null {
  if (!operator || !schema || operator.inputs.length !== 1 || operator.inputs[0]?.name !== port) return null;
  const names = new Set(schema.fields.map((field) => field.name));
  const properties = (operator.params_schema.properties ?? {}) as Record<string, { format?: string }>;
  for (const [name, property] of Object.entries(properties)) {
    const value = params[name];
    if (property.format === "column" && typeof value === "string" && value && !names.has(value)) {
      return `The stream has no column ${value}, which ${name} of this element needs.`;
    }
  }
  return null;
}
