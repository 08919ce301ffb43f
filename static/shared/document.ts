/** What a pipeline document says: its elements, groups and streams, and what they are called. Pure. */
import { listed } from "./format";
import type { DocElement, DocGroup, Operator, PipelineDocument } from "./types";

export interface PortRef {
  element: string;
  port: string;
}

export function emptyDocument(name: string): PipelineDocument {
  return { apiVersion: "fogline/v1", kind: "Pipeline", metadata: { name }, spec: { elements: [] } };
}

/** "readings" or "readings.out" */
export function parseReference(reference: string): PortRef {
  const [element = "", port = "out"] = reference.split(".", 2);
  return { element, port };
}

export function formatReference({ element, port }: PortRef): string {
  return port === "out" ? element : `${element}.${port}`;
}

export const elementsOf = (document: PipelineDocument): DocElement[] => document.spec?.elements ?? [];
export const groupsOf = (document: PipelineDocument): DocGroup[] => document.spec?.groups ?? [];

export function findElement(document: PipelineDocument, id: string): DocElement | undefined {
  return elementsOf(document).find((element) => element.id === id);
}

export function groupOf(document: PipelineDocument, id: string): DocGroup | undefined {
  return groupsOf(document).find((group) => group.elements.includes(id));
}

/** What an element is called where people read it: its title, else the operator's, else its id. */
export function displayName(
  element: Pick<DocElement, "id" | "type" | "title">,
  operator: Operator | undefined,
): string {
  if (element.title && element.title !== element.id) return element.title;
  const number =
    element.id === element.type ? "" : new RegExp(`^${element.type}-(\\d+)$`).exec(element.id)?.[1];
  if (operator && number !== undefined) return number ? `${operator.title} ${number}` : operator.title;
  return element.id;
}

/** What kind of element it is, where its name does not say so already; null: it does. */
export function kindName(element: DocElement, operator: Operator | undefined): string | null {
  const kind = operator?.title ?? element.type;
  return displayName(element, operator).toLowerCase().startsWith(kind.toLowerCase()) ? null : kind;
}

/** "input of Filter", "input left of Join": the port's own name only where there are several. */
export function portName(element: string, side: "in" | "out", port: string, ports: number): string {
  const end = side === "in" ? "input" : "output";
  return ports > 1 ? `${end} ${port} of ${element}` : `${end} of ${element}`;
}

/** What an element of the document is called. */
export function nameOfId(
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
  id: string,
): string {
  const element = findElement(document, id);
  return element ? displayName(element, operators.get(element.type)) : id;
}

/** What runs as one is called: its title, else its elements' names, of many only the first. */
export function groupName(group: DocGroup, nameOf: (id: string) => string): string {
  if (group.title?.trim()) return group.title;
  const names = group.elements.map(nameOf);
  return names.length > 4 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : listed(names);
}

/** What a stream is called: its element, and the port where there are several. */
export function streamName(
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
  { element, port }: PortRef,
): string {
  const name = nameOfId(document, operators, element);
  return port === "out" ? name : `${name}, ${port}`;
}

/** What an element of a template says that is to be replaced. */
export const REPLACE = "Your source goes here";

/** Said of either of the two, it holds for both. */
export const isApart = (a: DocElement, b: DocElement): boolean =>
  !!a.apart?.includes(b.id) || !!b.apart?.includes(a.id);

/** `spec.elements[2].params.x` -> its element and the path below it. */
export function locate(document: PipelineDocument, path: string): { element: string | null; path: string } {
  const match = /^spec\.elements\[(\d+)\]\.?(.*)$/.exec(path);
  const element = match ? elementsOf(document)[Number(match[1])] : undefined;
  return { element: element?.id ?? null, path: match ? (match[2] ?? "") : path };
}
