/** The canvas arranged by node, for React Flow: nodes, edges, and what a drag does. Plain state, no elements. */
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useReactFlow, type Node, type NodeChange, type OnNodeDrag } from "@xyflow/react";
import { useElements, useLive } from "../../shared/live";
import { mayAct } from "../../shared/page";
import type { Handover, PipelineDocument } from "../../shared/types";
import { groupOf, parseReference, placeOf } from "../../shared/document";
import { boxes, type CardNode, type FlowNode } from "../flow";
import { CARD, type Point } from "../places";
import { shown, takeNodeChanges, useEditor } from "../store";
import { drop } from "./dropping";
import { laneAt, laneLayout, type Frame, type Ghost, type Lane, type LaneLayout } from "./layout";
import {
  deadNodes,
  draftLane,
  draftLaneAt,
  laneHeads,
  lastMove,
  leftNode,
  liveLane,
  shadowsOf,
  underWay,
} from "./lies";
import { carry, hang, hangOver, keepLayout, useLanes, type Hanging } from "./store";
import { movable, unitsOf, type Unit } from "./units";

export type LaneFlowNode = Node<{ lane: Lane }, "lane">;
export type FrameFlowNode = Node<{ frame: Frame }, "frame">;
export type GhostFlowNode = Node<{ ghost: Ghost; handover: Handover | null }, "ghost">;
export type AnyNode = FlowNode | LaneFlowNode | FrameFlowNode | GhostFlowNode;
/** From an element that moves to what has arrived of it, or from the dead node that it left to where it runs. */
export interface Thread {
  id: string;
  from: Point;
  to: Point;
  /** null: it has arrived */
  handover: Handover | null;
}

const STILL = {
  selectable: false,
  draggable: false,
  connectable: false,
  focusable: false,
  deletable: false,
} as const;

/** Where everything lies, and who moves. */
function useLayout(cards: readonly CardNode[], document: PipelineDocument) {
  const live = useEditor((state) => state.mode === "live");
  const pipeline = useEditor((state) => state.name);
  const elements = useElements(pipeline);
  const nodes = useLive((state) => state.nodes);
  const handovers = useLive((state) => state.handovers);
  const chosen = useLanes(({ hanging }) => (hanging?.stage === "chosen" ? hanging : null));
  const planned = useMemo(() => plannedOf(chosen), [chosen]);
  return useMemo(() => {
    const running = new Map(elements.map((element) => [element.id, element]));
    const placed = cards.map(({ id, position, measured, data }) => ({
      id,
      lane: live ? liveLane(running.get(id)) : draftLane(data.element, !!data.operator?.view),
      reads: Object.values(data.element.inputs ?? {}).map((reference) => parseReference(reference).element),
      group: groupOf(document, id)?.id ?? null,
      height: measured?.height ?? 0,
      drawn: placeOf(data.element) ?? position,
    }));
    const moves = new Map<string, Handover>();
    const dead = deadNodes(nodes);
    const stranded = new Set(
      live ? elements.filter(({ node }) => node !== null && dead.has(node)).map(({ id }) => id) : [],
    );
    const shadows = live
      ? cards.flatMap(({ id }) => {
          const element = running.get(id);
          if (!element) return [];
          const handover = underWay(handovers, pipeline, element);
          if (handover) moves.set(id, handover);
          const left = leftNode(lastMove(handovers, pipeline, element), element, dead);
          return shadowsOf(element, handover, planned.get(id) ?? null, left);
        })
      : [];
    const heads = laneHeads(nodes, new Set(placed.map(({ lane }) => lane)), !live);
    const key = JSON.stringify([heads, placed, shadows]);
    return { key, heads, placed, shadows, moves, stranded };
  }, [cards, document, elements, nodes, handovers, live, pipeline, planned]);
}

const NOTHING: ReadonlyMap<string, string> = new Map();

/** The node to which each element of a chosen move would go. */
function plannedOf(chosen: Hanging | null): ReadonlyMap<string, string> {
  const target = chosen?.over?.startsWith("node ") ? chosen.over.slice("node ".length) : null;
  if (!chosen || target === null) return NOTHING;
  return new Map(chosen.units.flatMap(({ members }) => members.map((id) => [id, target] as const)));
}

/** The object of before where the new one says the same: React Flow draws only what is another object. */
function useKept<T extends { id: string }>(items: T[], same: (a: T, b: T) => boolean): T[] {
  const before = useRef(new Map<string, T>());
  return useMemo(() => {
    const kept = items.map((item) => {
      const old = before.current.get(item.id);
      return old && same(old, item) ? old : item;
    });
    before.current = new Map(kept.map((item) => [item.id, item]));
    return kept;
  }, [items, same]);
}

const sameNode = (a: AnyNode, b: AnyNode): boolean =>
  a.type === b.type &&
  a.position.x === b.position.x &&
  a.position.y === b.position.y &&
  a.width === b.width &&
  a.height === b.height &&
  a.selected === b.selected &&
  a.draggable === b.draggable &&
  a.measured?.height === b.measured?.height &&
  a.className === b.className &&
  a.style?.left === b.style?.left &&
  a.style?.top === b.style?.top &&
  (a.data === b.data || JSON.stringify(a.data) === JSON.stringify(b.data));

/** In its place by left and top. The browser takes several ms for each frame in which hundreds of cards have a
 * transform each, whatever has changed. */
const flat = (node: AnyNode): AnyNode => ({
  ...node,
  className: `${node.className ?? ""} flat`.trim(),
  style: { transform: "none", left: node.position.x, top: node.position.y },
});

const isOwn = (node: AnyNode): node is FlowNode => node.type === "card" || node.type === "group-box";

/** What hangs from the pointer: each card, and how far it is from its place. */
type Held = ReadonlyMap<string, Point>;

export interface Arranged {
  layout: LaneLayout;
  nodes: AnyNode[];
  /** those of `nodes` that are cards, and the boxes around what runs as one */
  cards: FlowNode[];
  threads: Thread[];
  onNodesChange: (changes: NodeChange<AnyNode>[]) => void;
  onNodeDragStart: OnNodeDrag<AnyNode>;
  onNodeDrag: OnNodeDrag<AnyNode>;
  onNodeDragStop: OnNodeDrag<AnyNode>;
}

/** The canvas arranged by node; null when it is arranged as drawn. `bare`: hundreds of cards are seen from afar. */
export function useArranged(nodes: readonly FlowNode[], bare: boolean): Arranged | null {
  const on = useLanes((state) => state.on);
  const document = useEditor(shown);
  const live = useEditor((state) => state.mode === "live");
  const cards = useMemo(
    () => nodes.filter((node): node is CardNode => on && node.type === "card"),
    [nodes, on],
  );
  const found = useLayout(cards, document);
  const hangs = useLanes((state) => state.hanging !== null);
  const [dragged, setHeld] = useState<Held | null>(null);
  const held = hangs ? dragged : null; // a drag may be given up before it ends
  // what hangs must not have its lanes change under it
  const still = useRef(found);
  if (!held && still.current.key !== found.key) still.current = found;
  const { heads, placed, shadows } = still.current;
  const layout = useMemo(() => laneLayout(heads, placed, shadows), [heads, placed, shadows]);
  const drawn = useMemo(
    () =>
      on ? laneNodes(layout, cards, document, found, live).map((node) => (bare ? flat(node) : node)) : [],
    [on, layout, cards, document, found, live, bare],
  );
  const resting = useKept(drawn, sameNode);
  const kept = useMemo(() => (held ? hanging(resting, held, document) : resting), [resting, held, document]);
  const threads = useMemo(() => threadsOf(layout, found.moves), [layout, found.moves]);
  useEffect(() => {
    keepLayout(on ? layout : null);
  }, [on, layout]);
  const drag = useDrag(layout, document, bare, setHeld);
  const own = useMemo(() => kept.filter(isOwn), [kept]);
  return on ? { layout, nodes: kept, cards: own, threads, onNodesChange: takeChanges, ...drag } : null;
}

function laneNodes(
  layout: LaneLayout,
  cards: readonly CardNode[],
  document: PipelineDocument,
  {
    moves,
    stranded,
  }: {
    moves: ReadonlyMap<string, Handover>;
    /** what lies on a node that is dead */
    stranded: ReadonlySet<string>;
  },
  live: boolean,
): AnyNode[] {
  const { elements } = useLive.getState();
  const running = elements[useEditor.getState().name] ?? [];
  const byId = new Map(running.map((element) => [element.id, element]));
  const may = mayAct(live ? "operator" : "editor");
  const inLanes = cards.map((card): CardNode => ({
    ...card,
    position: layout.cards[card.id] ?? card.position,
    className: stranded.has(card.id) ? "stranded" : "",
    draggable: may && (live ? movable(byId.get(card.id)) : !card.data.operator?.view),
  }));
  const place = ({ x, y, width, height }: { x: number; y: number; width: number; height: number }) => ({
    position: { x, y },
    width,
    height,
    measured: { width, height },
    handles: [],
  });
  const frames = layout.frames.map((frame): FrameFlowNode => ({
    id: `frame:${frame.site}`,
    type: "frame",
    data: { frame },
    ...place(frame),
    ...STILL,
    zIndex: -3,
  }));
  const lanes = layout.lanes.map((lane): LaneFlowNode => ({
    id: `lane:${lane.key}`,
    type: "lane",
    data: { lane },
    ...place(lane),
    ...STILL,
    zIndex: -2,
  }));
  const ghosts = layout.ghosts.map((ghost): GhostFlowNode => ({
    id: ghost.id,
    type: "ghost",
    data: { ghost, handover: ghost.role === "moving" ? (moves.get(ghost.element) ?? null) : null },
    ...place(ghost),
    ...STILL,
  }));
  return [...frames, ...lanes, ...boxes(document, inLanes), ...ghosts, ...inLanes];
}

/** With what hangs from the pointer in its place. All else stays the same object: each frame of a drag counts. */
function hanging(nodes: readonly AnyNode[], held: Held, document: PipelineDocument): AnyNode[] {
  const hung = new Map<string, AnyNode>();
  for (const node of nodes) {
    const by = held.get(node.id);
    if (!by || node.type !== "card") continue;
    const position = { x: node.position.x + by.x, y: node.position.y + by.y };
    hung.set(node.id, { ...node, position, className: "hangs", style: undefined, zIndex: 1000 });
  }
  const cards = [...hung.values()].filter((node): node is CardNode => node.type === "card");
  for (const box of boxes(document, cards)) hung.set(box.id, { ...box, className: "hangs" });
  return nodes.map((node) => hung.get(node.id) ?? node);
}

/** Below a card its last move is written: px of the canvas. */
const STRIP = 26;

/** From middle to middle, edge to edge. */
function threadsOf(layout: LaneLayout, moves: ReadonlyMap<string, Handover>): Thread[] {
  return layout.ghosts.flatMap((ghost) => {
    const handover = (ghost.role === "moving" && moves.get(ghost.element)) || null;
    const card = layout.cards[ghost.element];
    if ((!handover && ghost.role !== "left") || !card) return [];
    const down = ghost.y > card.y;
    const atCard = { x: card.x + CARD.width / 2, y: down ? card.y + CARD.height + STRIP : card.y };
    const atGhost = { x: ghost.x + ghost.width / 2, y: down ? ghost.y : ghost.y + ghost.height };
    const [from, to] = handover ? [atCard, atGhost] : [atGhost, atCard];
    return [{ id: ghost.id, from, to, handover }];
  });
}

/** Sizes and the selection of cards; their places are the lanes'. */
function takeChanges(changes: NodeChange<AnyNode>[]): void {
  const ids = new Set(useEditor.getState().nodes.map(({ id }) => id));
  const own = changes.filter(
    (change) => (change.type === "dimensions" || change.type === "select") && ids.has(change.id),
  );
  if (own.length) takeNodeChanges(own as NodeChange<FlowNode>[]);
}

function useDrag(
  layout: LaneLayout,
  document: PipelineDocument,
  bare: boolean,
  setHeld: (held: Held | null) => void,
): Pick<Arranged, "onNodeDragStart" | "onNodeDrag" | "onNodeDragStop"> {
  const flow = useReactFlow();
  // where the dragged card was when React Flow drew it last
  const drawnAt = useRef<Point | null>(null);
  const over = useCallback(
    (event: MouseEvent | TouchEvent): string | null => {
      const point = "changedTouches" in event ? event.changedTouches[0] : event;
      if (!point) return null;
      const place = flow.screenToFlowPosition({ x: point.clientX, y: point.clientY });
      if (useEditor.getState().mode === "edit") return draftLaneAt(layout, place);
      return laneAt(layout, place)?.key ?? null;
    },
    [flow, layout],
  );
  const onNodeDragStart = useCallback<OnNodeDrag<AnyNode>>(
    (event, _, nodes) => {
      const units = unitsOf(
        document,
        nodes.map(({ id }) => id),
        streamOrder(layout),
      );
      drawnAt.current = null; // a drag whose card went away has no end
      hang(units, over(event as unknown as MouseEvent));
    },
    [document, layout, over],
  );
  const onNodeDrag = useCallback<OnNodeDrag<AnyNode>>(
    (event, node) => {
      const { hanging } = useLanes.getState();
      const home = layout.cards[node.id];
      if (!hanging || !home) return;
      // with hundreds of cards in view React Flow takes longer than a frame to draw one in another place
      if (bare && drawnAt.current) {
        carry({ x: node.position.x - drawnAt.current.x, y: node.position.y - drawnAt.current.y });
      } else {
        carry(null);
        drawnAt.current = node.position;
        setHeld(heldBy(hanging.units, node, layout));
      }
      hangOver(over(event as unknown as MouseEvent));
    },
    [layout, bare, over, setHeld],
  );
  const onNodeDragStop = useCallback<OnNodeDrag<AnyNode>>(() => {
    const { hanging } = useLanes.getState();
    drawnAt.current = null;
    carry(null);
    setHeld(null);
    if (hanging) drop(hanging);
  }, [setHeld]);
  return { onNodeDragStart, onNodeDrag, onNodeDragStop };
}

/** From one unit to the next, where several hang from one pointer. */
const STACK = { x: 18, y: 30 };

/** The unit of the dragged card goes with the pointer, and the others come along below it. */
function heldBy(units: readonly Unit[], dragged: AnyNode, layout: LaneLayout): Held {
  const held = new Map<string, Point>();
  let below = 0;
  for (const { members } of units) {
    const own = members.includes(dragged.id);
    if (!own) below += 1;
    const anchor = layout.cards[own ? dragged.id : (members[0] ?? "")];
    if (!anchor) continue;
    const steps = own ? 0 : below;
    const by = {
      x: dragged.position.x + steps * STACK.x - anchor.x,
      y: dragged.position.y + steps * STACK.y - anchor.y,
    };
    for (const id of members) held.set(id, by);
  }
  return held;
}

/** A number for each element, which grows along the streams. */
export function streamOrder(layout: LaneLayout): (id: string) => number {
  return (id) => {
    const place = layout.cards[id];
    return place ? place.x * 1e6 + place.y : 0;
  };
}
