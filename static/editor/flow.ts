/** The document as React Flow draws it. Pure; unchanged elements keep their objects, so cards do not redraw. */
import type { Edge, Node } from "@xyflow/react";
import type { DocElement, DocGroup, Operator, PipelineDocument } from "../shared/types";
import {
  displayName,
  elementsOf,
  formatReference,
  groupsOf,
  parseReference,
  type Point,
  type PortRef,
} from "./document";

interface CardData extends Record<string, unknown> {
  element: DocElement;
  operator: Operator | undefined;
}

interface GroupData extends Record<string, unknown> {
  group: DocGroup;
  width: number;
  height: number;
}

export type CardNode = Node<CardData, "card">;
export type GroupNode = Node<GroupData, "group-box">;
export type FlowNode = CardNode | GroupNode;

export const CARD = { width: 240, height: 92 };
/** How the whole of it is brought into view. */
export const FIT = { padding: 0.08, maxZoom: 1.1, duration: 180 };
const PAD = { x: 20, top: 38, bottom: 20 };

function edgeId(from: PortRef, to: PortRef): string {
  return `${formatReference(from)}>${to.element}.${to.port}`;
}

export function toEdges(document: PipelineDocument, selected: ReadonlySet<string> = new Set()): Edge[] {
  const ids = new Set(elementsOf(document).map((element) => element.id));
  return elementsOf(document).flatMap((element) =>
    Object.entries(element.inputs ?? {}).flatMap(([port, reference]) => {
      const from = parseReference(reference);
      if (!ids.has(from.element)) return []; // a dangling input is a fault, drawn at its card
      const id = edgeId(from, { element: element.id, port });
      return {
        id,
        source: from.element,
        sourceHandle: from.port,
        target: element.id,
        targetHandle: port,
        type: "stream",
        selected: selected.has(id),
        ariaLabel: `Stream from ${from.element} to ${element.id}`,
      };
    }),
  );
}

export function toNodes(
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
  previous: readonly FlowNode[],
  selected: ReadonlySet<string>,
): FlowNode[] {
  const old = new Map(previous.map((node) => [node.id, node]));
  const cards = elementsOf(document).map((element, index) =>
    card(element, operators.get(element.type), old.get(element.id), selected.has(element.id), index),
  );
  return [...boxes(document, cards), ...cards];
}

function card(
  element: DocElement,
  operator: Operator | undefined,
  old: FlowNode | undefined,
  selected: boolean,
  index: number,
): CardNode {
  const position = element.ui ? { x: element.ui.x, y: element.ui.y } : { x: index * 300, y: 80 };
  const known = old?.type === "card" ? old : undefined;
  const same = known && known.data.element === element && known.data.operator === operator;
  if (same && known.selected === selected && samePlace(known.position, position)) return known;
  return {
    ...known,
    id: element.id,
    type: "card",
    position,
    selected,
    data: same ? known.data : { element, operator },
    ariaLabel: `${displayName(element, operator)} (${element.type})`,
  };
}

const samePlace = (a: Point, b: Point) => a.x === b.x && a.y === b.y;

/** One box behind each group, as large as its cards need. */
export function boxes(document: PipelineDocument, cards: readonly CardNode[]): GroupNode[] {
  const byId = new Map(cards.map((node) => [node.id, node]));
  return groupsOf(document).flatMap((group) => {
    const members = group.elements.flatMap((id) => byId.get(id) ?? []);
    if (members.length === 0) return [];
    const left = Math.min(...members.map((node) => node.position.x));
    const top = Math.min(...members.map((node) => node.position.y));
    const right = Math.max(...members.map((node) => node.position.x + (node.measured?.width ?? CARD.width)));
    const bottom = Math.max(
      ...members.map((node) => node.position.y + (node.measured?.height ?? CARD.height)),
    );
    const width = right - left + 2 * PAD.x;
    const height = bottom - top + PAD.top + PAD.bottom;
    return {
      id: `group:${group.id}`,
      type: "group-box" as const,
      position: { x: left - PAD.x, y: top - PAD.top },
      data: { group, width, height },
      width,
      height,
      selectable: false,
      draggable: false,
      connectable: false,
      focusable: false,
      deletable: false,
      zIndex: -1,
    };
  });
}
