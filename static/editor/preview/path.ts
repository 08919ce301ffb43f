/** What a preview of an element depends on: the element and all before it, without their places. */
import { elementsOf, parseReference } from "../../shared/document";
import type { ElementPreview, PipelineDocument } from "../../shared/types";

/** The rows on which an element is previewed. */
export type Rows = "source" | "running" | "pinned";

/** A text that differs exactly when the preview may: moving or naming a card asks no node again. */
export function pathKey(document: PipelineDocument, id: string): string {
  const byId = new Map(elementsOf(document).map((element) => [element.id, element]));
  const wanted = new Set<string>();
  const left = [id];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const element = byId.get(next);
    if (!element || wanted.has(next)) continue;
    wanted.add(next);
    left.push(...Object.values(element.inputs ?? {}).map((reference) => parseReference(reference).element));
  }
  const parts = [...wanted].map((each) => {
    const { type, params, inputs } = byId.get(each) ?? {};
    return [each, type, params ?? {}, inputs ?? {}];
  });
  return JSON.stringify(parts);
}

/** Whether the node is only busy with something first, so that it is asked again. */
export function isOnItsWay(preview: ElementPreview | undefined): boolean {
  const kind = preview?.trouble?.kind;
  return kind !== undefined && ["busy", "fetching", "starting", "reading"].includes(kind);
}

/** How many of the rows are shown. */
export function shownWords(shown: number, count: number, newest: boolean): string {
  if (count === 0) return "No rows";
  if (shown === count) return `All ${count.toLocaleString("en")} rows`;
  return `The ${newest ? "newest" : "first"} ${shown} of ${count.toLocaleString("en")} rows`;
}
