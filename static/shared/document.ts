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

/** What people call the pipeline; its name while it has no title. A draft may have anything there. */
export function pipelineTitle({ metadata }: PipelineDocument): string {
  const { title, name } = metadata;
  return (typeof title === "string" && title.trim()) || name;
}

/** The document under a title. One that only repeats the name is none. */
export function withTitle(document: PipelineDocument, title: string): PipelineDocument {
  const { title: _, ...metadata } = document.metadata;
  const named = title && title !== metadata.name ? { ...metadata, title } : metadata;
  return { ...document, metadata: named };
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

/** The ids of the elements that an element reads from. */
export const sourcesOf = (element: DocElement | undefined): string[] =>
  Object.values(element?.inputs ?? {}).map((input) => parseReference(input).element);

export function findElement(document: PipelineDocument, id: string): DocElement | undefined {
  return elementsOf(document).find((element) => element.id === id);
}

export function groupOf(document: PipelineDocument, id: string): DocGroup | undefined {
  return groupsOf(document).find((group) => group.elements.includes(id));
}

/** The name of an element as people read it: its title, else the operator's title, else its id. */
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

/** The kind of an element; null if its name says so already. */
export function kindName(element: DocElement, operator: Operator | undefined): string | null {
  const kind = operator?.title ?? element.type;
  return displayName(element, operator).toLowerCase().startsWith(kind.toLowerCase()) ? null : kind;
}

/** "input of Filter", "input left of Join": the port's own name only where there are several. */
export function portName(element: string, side: "in" | "out", port: string, ports: number): string {
  const end = side === "in" ? "input" : "output";
  return ports > 1 ? `${end} ${port} of ${element}` : `${end} of ${element}`;
}

/** The name of the document's element with that id. */
export function nameOfId(
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
  id: string,
): string {
  const element = findElement(document, id);
  return element ? displayName(element, operators.get(element.type)) : id;
}

/**
 * The name of a group: its title, else the names of its elements, or of the first three if there are many.
 */
export function groupName(group: DocGroup, nameOf: (id: string) => string): string {
  if (group.title?.trim()) return group.title;
  const names = group.elements.map(nameOf);
  return names.length > 4 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : listed(names);
}

/** The name of a stream: its element, and the port if there are several. */
export function streamName(
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
  { element, port }: PortRef,
): string {
  const name = nameOfId(document, operators, element);
  return port === "out" ? name : `${name}, ${port}`;
}

/** Where an element is drawn, or null if that is not said. */
export function placeOf({ ui }: DocElement): { x: number; y: number } | null {
  return ui?.x != null && ui.y != null ? { x: ui.x, y: ui.y } : null;
}

/** The note on a template's element that the user should replace, or set for themselves. */
export const replaceWords = (element: DocElement): string =>
  Object.keys(element.inputs ?? {}).length === 0 ? "Your source goes here" : "Set this for yourself";

/** Whether two elements must not share a node. It is written at one of them and holds for both. */
export const isApart = (a: DocElement, b: DocElement): boolean =>
  !!a.apart?.includes(b.id) || !!b.apart?.includes(a.id);

/** `spec.elements[2].params.x` -> its element and the path below it. */
export function locate(document: PipelineDocument, path: string): { element: string | null; path: string } {
  const match = /^spec\.elements\[(\d+)\]\.?(.*)$/.exec(path);
  const element = match ? elementsOf(document)[Number(match[1])] : undefined;
  return { element: element?.id ?? null, path: match ? (match[2] ?? "") : path };
}

/** The limit of an alarm, and on which side of it the alarm is; null of what is no alarm. */
export function limitOf(element: DocElement | undefined): { side: "low" | "high"; value: number } | null {
  const { direction = "above", raise_at, operator = ">", limit } = element?.params ?? {};
  const [above, value] =
    element?.type === "hysteresis-alarm"
      ? [direction !== "below", raise_at]
      : element?.type === "threshold-alert"
        ? [String(operator).startsWith(">"), limit]
        : [false, null];
  return typeof value === "number" ? { side: above ? "high" : "low", value } : null;
}
