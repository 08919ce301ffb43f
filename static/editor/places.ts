/** Where cards lie on the canvas: free places, rows and columns. Pure; lengths are the canvas' own. */

export interface Point {
  x: number;
  y: number;
}

export const GRID = 16;
/** A card in live mode: in a draft it has no row of figures. */
export const CARD = { width: 240, height: 92, draftHeight: 62 };
/** Room between two cards. */
const CLEAR = GRID;
const GAP = 3 * GRID;
/** What runs as one has a box around it, with a name above. */
const ROW_GAP = 4 * GRID;

export const snap = ({ x, y }: Point): Point => ({
  x: Math.round(x / GRID) * GRID,
  y: Math.round(y / GRID) * GRID,
});

const touch = (a: Point, b: Point): boolean =>
  Math.abs(a.x - b.x) < CARD.width + CLEAR && Math.abs(a.y - b.y) < CARD.height + CLEAR;

/** `wanted`, or the nearest place below it where no card lies. */
export function freePlace(taken: readonly Point[], wanted: Point): Point {
  let place = snap(wanted);
  for (;;) {
    const hit = taken.find((at) => touch(at, place));
    if (!hit) return place;
    place = { x: place.x, y: Math.ceil((hit.y + CARD.height + CLEAR) / GRID) * GRID };
  }
}

/** How far a set of cards must move so that none lies over another card: zero, or a step to one side. */
export function besideOffset(taken: readonly Point[], cards: readonly Point[]): Point {
  const span = (side: "x" | "y") => {
    const all = cards.map((card) => card[side]);
    return Math.max(...all) - Math.min(...all);
  };
  const step = snap({ x: span("x") + CARD.width + GAP, y: span("y") + CARD.height + ROW_GAP });
  const free = (by: Point) =>
    cards.every((card) => !taken.some((at) => touch(at, { x: card.x + by.x, y: card.y + by.y })));
  const none = { x: 0, y: 0 };
  if (free(none)) return none;
  for (let ring = 1; ; ring += 1) {
    const [x, y] = [ring * step.x, ring * step.y];
    const ways = [
      { x: 0, y },
      { x, y: 0 },
      { x: 0, y: -y },
      { x: -x, y: 0 },
    ];
    const found = ways.find(free);
    if (found) return found;
  }
}

export type Arrangement = "row" | "column" | "across" | "down";

/**
 * Cards in one row or column, or spread evenly `across` or `down` between the two outermost. No two
 * overlap: if there is too little room, the later ones give way.
 */
export function arranged<T extends Point>(cards: readonly T[], how: Arrangement): [T, Point][] {
  const along = how === "row" || how === "across" ? "x" : "y";
  const other = along === "x" ? "y" : "x";
  // side by side there is a stream between them to be seen
  const least = along === "x" ? CARD.width + GAP : CARD.height + CLEAR;
  const sorted = [...cards].sort((a, b) => a[along] - b[along] || a[other] - b[other]);
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (!first || !last) return [];
  const inLine = how === "row" || how === "column";
  const level = Math.min(...cards.map((card) => card[other]));
  const step = Math.max(least, (last[along] - first[along]) / Math.max(1, sorted.length - 1));
  let next = -Infinity;
  return sorted.map((card, index) => {
    const place = inLine ? Math.max(card[along], next) : first[along] + index * step;
    next = place + least;
    const point = { x: card.x, y: card.y, [along]: Math.round(place) };
    return [card, inLine ? { ...point, [other]: level } : point];
  });
}
