/** Which ports may be joined, and why not. Pure. */
import type { DocElement, Operator, PipelineDocument, StreamSchema } from "../shared/types";
import { mends, misfits, type Mend, type Misfit } from "./columns";
import { elementsOf, nameOfId, parseReference, type PortRef } from "../shared/document";

type Verdict =
  | { ok: true; replaces: string | null }
  | { ok: false; reason: string; /** what would make it fit */ mends: Mend[] };

const refuse = (reason: string, mends: Mend[] = []): Verdict => ({ ok: false, reason, mends });

export function judge(
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
  from: PortRef,
  to: PortRef,
  schemas: Readonly<Record<string, StreamSchema>> = {},
): Verdict {
  const { byId } = graphOf(document);
  const source = byId.get(from.element);
  const target = byId.get(to.element);
  if (!source || !target) return refuse("One of the two elements is gone.");
  if (source.id === target.id) return refuse("An element cannot read its own output.");
  const name = (id: string) => nameOfId(document, operators, id);
  const out = operators.get(source.type);
  const into = operators.get(target.type);
  if (out && !out.outputs.some((port) => port.name === from.port))
    return refuse(`${name(source.id)} has no output ${from.port}.`);
  if (into && !into.inputs.some((port) => port.name === to.port))
    return refuse(`${name(target.id)} has no input ${to.port}.`);
  if (reaches(document, target.id, source.id)) {
    return refuse(`${name(target.id)} already feeds ${name(source.id)}: this would make a cycle.`);
  }
  const stream = schemas[`${from.element}.${from.port}`];
  const misfit = into?.inputs.length === 1 && stream && unfit(into, target.params ?? {}, stream);
  if (misfit) return refuse(misfit.reason, mends(operators, misfit, stream, from, to));
  return { ok: true, replaces: target.inputs?.[to.port] ?? null };
}

/** A document as a graph, made once: many ports are judged of one document. */
interface Graph {
  byId: Map<string, DocElement>;
  feeds: Map<string, string[]>;
  /** the elements that rows of an element reach, including itself, as far as it was computed */
  reach: Map<string, Set<string>>;
}

const graphs = new WeakMap<PipelineDocument, Graph>();

function graphOf(document: PipelineDocument): Graph {
  const known = graphs.get(document);
  if (known) return known;
  const graph: Graph = { byId: new Map(), feeds: new Map(), reach: new Map() };
  for (const element of elementsOf(document)) {
    if (!graph.byId.has(element.id)) graph.byId.set(element.id, element);
    for (const reference of Object.values(element.inputs ?? {})) {
      const producer = parseReference(reference).element;
      const fed = graph.feeds.get(producer);
      if (fed) fed.push(element.id);
      else graph.feeds.set(producer, [element.id]);
    }
  }
  graphs.set(document, graph);
  return graph;
}

/** Whether rows of `start` arrive, over any path, at `goal`. */
export function reaches(document: PipelineDocument, start: string, goal: string): boolean {
  const { feeds, reach } = graphOf(document);
  let seen = reach.get(start);
  if (!seen) {
    seen = new Set();
    const open = [start];
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      if (seen.has(id)) continue;
      seen.add(id);
      open.push(...(feeds.get(id) ?? []));
    }
    reach.set(start, seen);
  }
  return seen.has(goal);
}

/**
 * Columns that the target's parameters name, or still have to, and that the stream does not have as they
 * are needed. Only where the target has one input: with several, a parameter may mean any of them.
 */
function unfit(
  operator: Operator,
  params: Record<string, unknown>,
  stream: StreamSchema,
): Misfit | undefined {
  // one of several columns that the stream does not have is told at its field: the others are read already
  return misfits(operator, params, stream).find(
    ({ column, found, path }) => !column || found !== null || !path.includes("["),
  );
}
