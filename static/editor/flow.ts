/** The document as React Flow draws it. Pure; unchanged elements keep their objects, so cards do not redraw. */
import { Position, type Edge, type Node, type NodeHandle } from "@xyflow/react";
import type { DocElement, Operator, PipelineDocument, Port } from "../shared/types";
import {
  displayName,
  elementsOf,
  formatReference,
  groupName,
  groupsOf,
  kindName,
  parseReference,
  placeOf,
  replaceWords,
  type PortRef,
} from "../shared/document";
import type { StreamMark } from "./difference";
import { CARD, type Point } from "./places";

interface CardData extends Record<string, unknown> {
  element: DocElement;
  operator: Operator | undefined;
  live: boolean;
}

interface GroupData extends Record<string, unknown> {
  name: string;
  width: number;
  height: number;
}

export type CardNode = Node<CardData, "card">;
export type GroupNode = Node<GroupData, "group-box">;
/** Where a note or a frame lies: for the map and the zoom. The note itself is drawn by notes/layer.tsx. */
export type NotePlace = Node<Record<string, never>, "note-place">;
export type FlowNode = CardNode | GroupNode | NotePlace;

const PAD = { x: 20, top: 38, bottom: 20 };
/**
 * The description of a card besides its name: its problems, which it shows, and React Flow's words on the
 * keys.
 */
export const problemsId = (element: string): string => `problems-${element}`;
const KEYS_HELP = "react-flow__node-desc-1";
/** The description of a stream: what passes in it, and React Flow's words on the keys. */
export const passesId = (edge: string): string => `passes-${edge}`;
const EDGE_KEYS_HELP = "react-flow__edge-desc-1";
/** As streams.css draws them. */
const PORT = { draft: 12, live: 6 };

export const portsOf = (operator: Operator | undefined): { inputs: Port[]; outputs: Port[] } =>
  operator ?? {
    inputs: [{ name: "in", description: "", optional: false }],
    outputs: [{ name: "out", description: "", optional: false }],
  };

/** How far down the card's side a port is: 0 to 1. */
/** From one port of a side to the next, where that has so many that the card is made higher for them. */
const PORT_STEP = 17;

/** The height of a card in the draft with a head of the usual height. */
export function draftHeight(operator: Operator | undefined): number {
  const { inputs, outputs } = portsOf(operator);
  return Math.max(CARD.draftHeight, (Math.max(inputs.length, outputs.length) + 1) * PORT_STEP);
}

export const portPlace = (index: number, count: number): number => (index + 1) / (count + 1);

function edgeId(from: PortRef, to: PortRef): string {
  return `${formatReference(from)}>${to.element}.${to.port}`;
}

export type StreamEdge = Edge<{ mark?: StreamMark["mark"] }, "stream">;

/** `marks`: the streams that were added, and those that were removed, which are drawn, too. */
export function toEdges(
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
  selected: ReadonlySet<string> = new Set(),
  previous: readonly StreamEdge[] = [],
  marks: readonly StreamMark[] = [],
): StreamEdge[] {
  const names = new Map(
    elementsOf(document).map((element) => [element.id, displayName(element, operators.get(element.type))]),
  );
  const old = new Map(previous.map((edge) => [edge.id, edge]));
  const marked = new Map(marks.map(({ from, to, mark }) => [edgeId(from, to), mark]));
  const edge = (from: PortRef, to: PortRef): StreamEdge[] => {
    // a dangling input is a fault, drawn at its card
    if (!names.has(from.element) || !names.has(to.element)) return [];
    const id = edgeId(from, to);
    const mark = marked.get(id);
    const ends = `Stream from ${names.get(from.element)} to ${names.get(to.element)}`;
    const ariaLabel = mark ? `${ends}, ${mark}` : ends;
    const known = old.get(id);
    const same = known?.ariaLabel === ariaLabel && known.data?.mark === mark;
    if (same && known.selected === selected.has(id)) return [known];
    return [
      {
        id,
        source: from.element,
        sourceHandle: from.port,
        target: to.element,
        targetHandle: to.port,
        type: "stream",
        selected: selected.has(id),
        ariaLabel,
        domAttributes: { "aria-describedby": `${passesId(id)} ${EDGE_KEYS_HELP}` },
        ...(mark ? { data: { mark } } : {}),
      },
    ];
  };
  const edges = elementsOf(document).flatMap((element) =>
    Object.entries(element.inputs ?? {}).flatMap(([port, reference]) =>
      edge(parseReference(reference), { element: element.id, port }),
    ),
  );
  const drawn = new Set(edges.map(({ id }) => id));
  const gone = marks.filter(({ from, to }) => !drawn.has(edgeId(from, to)));
  return [...edges, ...gone.flatMap(({ from, to }) => edge(from, to))];
}

export function toNodes(
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
  previous: readonly FlowNode[],
  selected: ReadonlySet<string>,
  live = false,
): FlowNode[] {
  const old = new Map(previous.map((node) => [node.id, node]));
  const cards = elementsOf(document).map((element, index) =>
    card(element, operators.get(element.type), old.get(element.id), selected.has(element.id), index, live),
  );
  return [...behind(document, cards), ...cards];
}

/** What lies behind the cards. */
export const behind = (document: PipelineDocument, cards: readonly CardNode[]): FlowNode[] => [
  ...notePlaces(document),
  ...boxes(document, cards),
];

function card(
  element: DocElement,
  operator: Operator | undefined,
  old: FlowNode | undefined,
  selected: boolean,
  index: number,
  live: boolean,
): CardNode {
  const position = placeOf(element) ?? { x: index * 300, y: 80 };
  const known = old?.type === "card" && old.data.live === live ? old : undefined;
  const same = known && known.data.element === element && known.data.operator === operator;
  if (same && known.selected === selected && samePlace(known.position, position)) return known;
  const fresh: CardNode = {
    ...known,
    id: element.id,
    type: "card",
    position,
    selected,
    data: same ? known.data : { element, operator, live },
    ariaLabel: [
      displayName(element, operator),
      kindName(element, operator),
      !live && element.ui?.replace && replaceWords(element),
    ]
      .filter(Boolean)
      .join(", "),
    domAttributes: { "aria-describedby": `${problemsId(element.id)} ${KEYS_HELP}` },
  };
  if (known && known.data.operator === operator) return fresh;
  return sized(fresh, { width: CARD.width, height: live ? CARD.height : draftHeight(operator) });
}

/**
 * A card with its size, and where its ports are. React Flow would measure them in the page, for which it draws
 * all cards once, also those out of sight.
 */
export function sized(node: CardNode, measured: { width: number; height: number }): CardNode {
  const { inputs, outputs } = portsOf(node.data.operator);
  const size = node.data.live ? PORT.live : PORT.draft;
  const handles = (ports: Port[], type: "source" | "target"): NodeHandle[] =>
    ports.map((port, index) => ({
      id: port.name,
      type,
      position: type === "target" ? Position.Left : Position.Right,
      x: (type === "target" ? 0 : measured.width) - size / 2,
      y: portPlace(index, ports.length) * measured.height - size / 2,
      width: size,
      height: size,
    }));
  return { ...node, measured, handles: [...handles(inputs, "target"), ...handles(outputs, "source")] };
}

const samePlace = (a: Point, b: Point) => a.x === b.x && a.y === b.y;

const STILL = {
  handles: [],
  selectable: false,
  draggable: false,
  connectable: false,
  focusable: false,
  deletable: false,
};

const notePlaces = (document: PipelineDocument): NotePlace[] =>
  (document.spec?.notes ?? []).map(({ id, x, y, width, height }) => ({
    ...STILL,
    id: `note:${id}`,
    type: "note-place",
    position: { x, y },
    data: {},
    width,
    height,
    measured: { width, height },
    zIndex: -2,
  }));

/** One box behind each group, as large as its cards need. */
export function boxes(document: PipelineDocument, cards: readonly CardNode[]): GroupNode[] {
  if (groupsOf(document).length === 0) return [];
  const byId = new Map(cards.map((node) => [node.id, node]));
  const nameOf = (id: string): string => {
    const data = byId.get(id)?.data;
    return data ? displayName(data.element, data.operator) : id;
  };
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
      data: { name: groupName(group, nameOf), width, height },
      width,
      height,
      measured: { width, height },
      ...STILL,
      zIndex: -1,
    };
  });
}
