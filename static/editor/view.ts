/** The zoom of the canvas, and how cards are brought into view. */
import { createContext } from "react";
import type { Node, useReactFlow, Viewport } from "@xyflow/react";
import { CARD, type Point } from "./places";

export type Flow = Pick<
  ReturnType<typeof useReactFlow>,
  "fitView" | "flowToScreenPosition" | "getNodes" | "getViewport" | "setViewport" | "zoomIn" | "zoomOut"
>;

/** Below `whole`, a card has larger letters and no figures; below `readable` there is no telling one
 * from another by its name alone, so that nothing is brought into view like that unless it is asked for. */
export const ZOOM = { least: 0.02, most: 2, fit: 1.1, whole: 0.75, readable: 0.5 };
/**
 * If there are too many cards to show them all readably, the view starts at the first ones with this zoom.
 */
const START_ZOOM = 0.8;
export const MOVE_MS = 180;
/** Room that is kept to the canvas' edges; above, the arrangement is chosen, and below, the tools float. */
const ROOM = { side: 24, top: 58, bottom: 72 };

/**
 * `whole`: the card itself; `large`: its icon, name, kind and node in larger letters; `largest`: its icon and
 * name; `dot`: a box.
 */
export type Look = "whole" | "large" | "largest" | "dot";

export function lookAt(zoom: number): Look {
  if (zoom >= ZOOM.whole) return "whole";
  if (zoom >= 0.4) return "large";
  return zoom >= 0.24 ? "largest" : "dot";
}

/** How much larger letters are drawn from afar, so that they are as large on the screen at any zoom. */
export const letterScale = (zoom: number): number =>
  zoom >= ZOOM.whole ? 1 : Math.min(2.2, Math.round(8.4 / zoom) / 10);

/**
 * What a card needs to know about the zoom. `simple`: it has no figures. `bare`: there are so many cards that
 * they have no ports either. `far`: it is a box.
 */
interface CardLook {
  simple: boolean;
  bare: boolean;
  far: boolean;
}

export const LookContext = createContext<CardLook>({ simple: false, bare: false, far: false });

interface Size {
  width: number;
  height: number;
}

/** All of the cards in the middle, as long as their names can be read; else the beginning of them. */
export function readableView(cards: readonly Point[], room: Size): Viewport {
  if (cards.length === 0) return { x: 0, y: 0, zoom: 1 };
  const left = Math.min(...cards.map((card) => card.x));
  const top = Math.min(...cards.map((card) => card.y));
  const width = Math.max(...cards.map((card) => card.x)) + CARD.width - left;
  const height = Math.max(...cards.map((card) => card.y)) + CARD.height - top;
  const free = { width: room.width - 2 * ROOM.side, height: room.height - ROOM.top - ROOM.bottom };
  const all = Math.min(free.width / width, free.height / height, ZOOM.fit);
  const zoom = all >= ZOOM.readable ? all : START_ZOOM;
  const spare = (size: number, space: number) => Math.max(0, (space - size * zoom) / 2);
  const x = ROOM.side + spare(width, free.width) - left * zoom;
  return { x, y: ROOM.top + spare(height, free.height) - top * zoom, zoom };
}

/** Whether all cards lie in the part of the canvas that is seen: a map of them then says nothing. */
export function allSeen(cards: readonly Point[], { x, y, zoom }: Viewport, room: Size): boolean {
  return cards.every((card) => {
    const [left, top] = [card.x * zoom + x, card.y * zoom + y];
    const [right, bottom] = [left + CARD.width * zoom, top + CARD.height * zoom];
    return left >= 0 && top >= 0 && right <= room.width && bottom <= room.height;
  });
}

export function canvasBox(): DOMRect {
  return document.querySelector(".canvas")?.getBoundingClientRect() ?? new DOMRect(0, 0, 800, 600);
}

/** A card's place; of a lane, a note and a frame those of cards in two of its corners, so that it fits whole. */
export function placesOf({ type, position, width = 0, height = 0 }: Node): Point[] {
  if (type === "card") return [position];
  if (type !== "lane" && type !== "note-place") return [];
  return [position, { x: position.x + width - CARD.width, y: position.y + height - CARD.height }];
}

export function showReadably(flow: Flow): void {
  const places = flow.getNodes().flatMap(placesOf);
  void flow.setViewport(readableView(places, canvasBox()), { duration: MOVE_MS });
}

/** Every element and note, however many there are. */
export function showAll(flow: Flow): void {
  const padding = { top: `${ROOM.top}px`, x: `${ROOM.side}px`, bottom: `${ROOM.bottom}px` } as const;
  void flow.fitView({ padding, minZoom: ZOOM.least, maxZoom: ZOOM.fit, duration: MOVE_MS });
}

/** Bring cards into view if they are not, by the shortest way: what else is seen hardly moves. */
export function reveal(flow: Flow, ids: Iterable<string>, zoomMin = 0): void {
  const wanted = new Set(ids);
  const cards = flow.getNodes().filter((node) => wanted.has(node.id));
  if (cards.length === 0) return;
  const box = canvasBox();
  const now = flow.getViewport();
  const zoom = Math.max(now.zoom, zoomMin);
  const along = (side: "x" | "y", size: number, before: number, from: number, to: number) => {
    const all = cards.map((card) => card.position[side]);
    const first = Math.min(...all) * zoom + before;
    const last = (Math.max(...all) + size) * zoom + before;
    if (first < from) return before + from - first;
    return last > to ? before + Math.max(to - last, from - first) : before;
  };
  const x = along("x", CARD.width, now.x, ROOM.side, box.width - ROOM.side);
  const y = along("y", CARD.height, now.y, ROOM.top, box.height - ROOM.bottom);
  if (x !== now.x || y !== now.y || zoom !== now.zoom)
    void flow.setViewport({ x, y, zoom }, { duration: MOVE_MS });
}

/** Frames in which a card that was just added or brought into view is waited for. */
const FRAMES_MAX = 30;

/** The card takes the keys from now on, as soon as it is drawn. */
export function focusCard(id: string, frames = FRAMES_MAX): void {
  const card = document.querySelector<HTMLElement>(`.react-flow__node[data-id="${CSS.escape(id)}"]`);
  if (card) card.focus({ preventScroll: true });
  else if (frames > 0) window.requestAnimationFrame(() => focusCard(id, frames - 1));
}
