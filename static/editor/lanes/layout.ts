/**
 * Where cards lie when the canvas is arranged by node: one lane for each node, in a frame for each site. Pure;
 * lengths are the canvas' own.
 *
 * A column is how many streams an element is away from a source, the same in all lanes, so that rows flow to the
 * right. In a lane, what runs as one lies together, and cards lie in the order in which they are drawn.
 */
import { CARD, type Point } from "../places";

export interface Box extends Point {
  width: number;
  height: number;
}

/** An element and the lane in which it lies. */
export interface Placed {
  id: string;
  lane: string;
  /** the elements from which it reads */
  reads: readonly string[];
  /** what runs as one; null when it runs alone */
  group: string | null;
  height: number;
  /** its place in the drawing */
  drawn: Point;
}

export type GhostRole = "moving" | "planned" | "standby" | "backup" | "left";

/** What a node has, or had, of an element that another node owns. */
export interface Shadow {
  element: string;
  lane: string;
  role: GhostRole;
}

export type LaneKind = "node" | "site" | "anywhere" | "views";

export interface LaneHead {
  key: string;
  kind: LaneKind;
  /** the node's or the site's name; empty when it is neither */
  name: string;
  /** the frame in which it lies; empty when it lies in none */
  site: string;
}

export interface Lane extends LaneHead, Box {
  /** nothing of the pipeline is there, so it is only a place to drop something */
  folded: boolean;
}

export interface Frame extends Box {
  site: string;
}

export interface Ghost extends Shadow, Box {
  id: string;
}

export interface LaneLayout extends Box {
  lanes: Lane[];
  frames: Frame[];
  cards: Readonly<Record<string, Point>>;
  ghosts: Ghost[];
}

export const HEAD_WIDTH = 216;
/** From this number of nodes on, lanes without anything of the pipeline are folded. */
const FOLD_FROM = 9;
const COLUMN = CARD.width + 72;
const PAD = 16;
/** Between two cards of a column: a card has its last move written below it. */
const ROW_GAP = 36;
const GROUP = { top: 30, bottom: 12 };
const GHOST = { height: 34, gap: 10 };
const LANE = { least: 124, gap: 10 };
const FRAME = { top: 34, pad: 10, gap: 20 };
const CHIP = { width: 200, height: 48, gap: 8 };

/** How many streams each element is away from a source. A circle, which a draft may have, ends the count. */
export function columnsOf(elements: readonly Pick<Placed, "id" | "reads">[]): Map<string, number> {
  const byId = new Map(elements.map((element) => [element.id, element]));
  const known = new Map<string, number>();
  const open = new Set<string>();
  const visit = (id: string): number => {
    const found = known.get(id);
    if (found !== undefined) return found;
    const element = byId.get(id);
    if (!element || open.has(id)) return -1;
    open.add(id);
    const column = 1 + Math.max(-1, ...element.reads.map(visit));
    open.delete(id);
    known.set(id, column);
    return column;
  };
  for (const { id } of elements) visit(id);
  return known;
}

const byDrawing = (a: Placed, b: Placed): number => a.drawn.y - b.drawn.y || a.drawn.x - b.drawn.x;

/** What runs as one lies together; the units come in the order in which they are drawn. */
function unitsOf(elements: readonly Placed[]): Placed[][] {
  const units = new Map<string, Placed[]>();
  for (const element of [...elements].sort(byDrawing)) {
    const key = element.group === null ? `element ${element.id}` : `group ${element.group}`;
    const unit = units.get(key);
    if (unit) unit.push(element);
    else units.set(key, [element]);
  }
  return [...units.values()];
}

interface Filled {
  cards: Map<string, Point>;
  ghosts: Ghost[];
  height: number;
}

/** The places in one lane, from its upper left corner. */
function filled(
  elements: readonly Placed[],
  shadows: readonly Shadow[],
  columns: ReadonlyMap<string, number>,
): Filled {
  const columnOf = (id: string) => columns.get(id) ?? 0;
  const bottoms: number[] = [];
  const bottom = (column: number) => bottoms[column] ?? PAD;
  const cards = new Map<string, Point>();
  const left = (column: number) => HEAD_WIDTH + PAD + column * COLUMN;
  for (const unit of unitsOf(elements)) {
    const taken = unit.map(({ id }) => columnOf(id));
    const [first, last] = [Math.min(...taken), Math.max(...taken)];
    const span = Array.from({ length: last - first + 1 }, (_, index) => first + index);
    const grouped = unit[0]?.group != null;
    const top = Math.max(...span.map(bottom)) + (grouped ? GROUP.top : 0);
    const next = new Map<number, number>();
    for (const { id, height } of unit) {
      const column = columnOf(id);
      const y = next.get(column) ?? top;
      cards.set(id, { x: left(column), y });
      next.set(column, y + height + ROW_GAP);
    }
    const end = Math.max(...next.values()) + (grouped ? GROUP.bottom : 0);
    for (const column of span) bottoms[column] = end;
  }
  const ghosts = shadows.map((shadow): Ghost => {
    const column = columnOf(shadow.element);
    const y = bottom(column);
    bottoms[column] = y + GHOST.height + GHOST.gap;
    const place = { x: left(column), y, width: CARD.width, height: GHOST.height };
    return { ...shadow, ...place, id: `ghost:${shadow.lane}:${shadow.element}` };
  });
  return { cards, ghosts, height: Math.max(LANE.least, ...Array.from(bottoms, (each) => (each ?? 0) + PAD)) };
}

function grouped<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const found = new Map<string, T[]>();
  for (const item of items) {
    const list = found.get(key(item));
    if (list) list.push(item);
    else found.set(key(item), [item]);
  }
  return found;
}

/**
 * The lanes with all that lies in them. `heads` come in the order in which they are drawn; those of one site
 * follow each other.
 */
export function laneLayout(
  heads: readonly LaneHead[],
  elements: readonly Placed[],
  shadows: readonly Shadow[],
): LaneLayout {
  const columns = columnsOf(elements);
  const [own, ghostsIn] = [grouped(elements, ({ lane }) => lane), grouped(shadows, ({ lane }) => lane)];
  const most = Math.max(0, ...columns.values());
  const inner = HEAD_WIDTH + 2 * PAD + (most + 1) * COLUMN - (COLUMN - CARD.width);
  const width = Math.max(inner, HEAD_WIDTH + 3 * COLUMN);
  const folds = heads.filter(({ kind }) => kind === "node").length >= FOLD_FROM;
  const cards: Record<string, Point> = {};
  const [lanes, ghosts, frames]: [Lane[], Ghost[], Frame[]] = [[], [], []];
  const isFolded = ({ key, kind }: LaneHead) =>
    folds &&
    kind === "node" &&
    !own.has(key) &&
    !(ghostsIn.get(key) ?? []).some(({ role }) => role !== "backup");
  const perRow = Math.max(1, Math.floor((width + CHIP.gap) / (CHIP.width + CHIP.gap)));
  let y = 0;
  for (const [site, members] of grouped(heads, ({ site, key }) => (site ? `site ${site}` : key))) {
    const framed = site.startsWith("site ");
    const begin = y;
    const x = FRAME.pad;
    if (framed) y += FRAME.top;
    for (const head of members.filter((each) => !isFolded(each))) {
      const inside = filled(own.get(head.key) ?? [], ghostsIn.get(head.key) ?? [], columns);
      lanes.push({ ...head, x, y, width, height: inside.height, folded: false });
      for (const [id, place] of inside.cards) cards[id] = { x: x + place.x, y: y + place.y };
      for (const ghost of inside.ghosts) ghosts.push({ ...ghost, x: x + ghost.x, y: y + ghost.y });
      y += inside.height + LANE.gap;
    }
    const chips = members.filter(isFolded);
    chips.forEach((head, index) => {
      const [row, column] = [Math.floor(index / perRow), index % perRow];
      const place = { x: x + column * (CHIP.width + CHIP.gap), y: y + row * (CHIP.height + CHIP.gap) };
      lanes.push({ ...head, ...place, width: CHIP.width, height: CHIP.height, folded: true });
    });
    if (chips.length) y += Math.ceil(chips.length / perRow) * (CHIP.height + CHIP.gap);
    if (!framed) continue;
    frames.push({
      site: members[0]?.site ?? "",
      x: 0,
      y: begin,
      width: width + 2 * FRAME.pad,
      height: y - begin,
    });
    y += FRAME.gap;
  }
  return { lanes, frames, cards, ghosts, x: 0, y: 0, width: width + 2 * FRAME.pad, height: y };
}

const holds = (box: Box, { x, y }: Point): boolean =>
  x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height;

/** The lane at a place; null where there is none. */
export const laneAt = (layout: LaneLayout, place: Point): Lane | null =>
  layout.lanes.find((lane) => holds(lane, place)) ?? null;

/** The frame at a place, whatever else lies there; null where there is none. */
export const frameAt = (layout: LaneLayout, place: Point): Frame | null =>
  layout.frames.find((frame) => holds(frame, place)) ?? null;
