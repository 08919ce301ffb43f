/** A pipeline as a small drawing: boxes where its elements lie, lines for its streams. Pure. */
import { displayName, elementsOf, parseReference } from "./document";
import type { Operator, PipelineDocument } from "./types";

/** An element as a picture shows it. */
export interface DrawnElement {
  id: string;
  title: string;
  /** of its operator */
  category: string | undefined;
  x: number;
  y: number;
  /** the streams that it reads: `element` or `element.port` */
  inputs: string[];
  /** of what runs */
  status?: string;
}

export interface Picture {
  boxes: readonly DrawnElement[];
  /** paths of SVG, each from the right side of a box to the left side of another */
  streams: { key: string; path: string }[];
  /** what all of it takes, with room around */
  view: { x: number; y: number; width: number; height: number };
}

/** The size of a box, as on the canvas, but with a height that leaves room between boxes. */
export const BOX = { width: 240, height: 80 };
const ROOM = 12;
const STEP = 300;
const BEND_MIN = 30;

/** The elements of a document: those without a place stand in a row. */
export const drawnOf = (
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
): DrawnElement[] =>
  elementsOf(document).map((element, index) => {
    const operator = operators.get(element.type);
    return {
      id: element.id,
      title: displayName(element, operator),
      category: operator?.category,
      x: element.ui?.x ?? index * STEP,
      y: element.ui?.y ?? 0,
      inputs: Object.values(element.inputs ?? {}),
    };
  });

export function pictureOf(boxes: readonly DrawnElement[]): Picture {
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const streams = boxes.flatMap((to) =>
    to.inputs.flatMap((reference, index) => {
      const from = byId.get(parseReference(reference).element);
      if (!from) return [];
      const share = (index + 1) / (to.inputs.length + 1);
      return [{ key: `${reference}>${to.id}.${index}`, path: pathOf(from, to, share) }];
    }),
  );
  return { boxes, streams, view: viewOf(boxes) };
}

/** `share`: how far down the box that it leads to. */
function pathOf(from: DrawnElement, to: DrawnElement, share: number): string {
  const [x1, y1] = [from.x + BOX.width, from.y + BOX.height / 2];
  const [x2, y2] = [to.x, to.y + BOX.height * share];
  const bend = Math.max(BEND_MIN, (x2 - x1) / 2);
  return `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
}

function viewOf(boxes: readonly DrawnElement[]): Picture["view"] {
  const x = Math.min(0, ...boxes.map((box) => box.x)) - ROOM;
  const y = Math.min(...boxes.map((box) => box.y), Infinity);
  const top = (Number.isFinite(y) ? y : 0) - ROOM;
  const right = Math.max(...boxes.map((box) => box.x + BOX.width), BOX.width) + ROOM;
  const bottom = Math.max(...boxes.map((box) => box.y + BOX.height), BOX.height) + ROOM;
  return { x, y: top, width: right - x, height: bottom - top };
}
