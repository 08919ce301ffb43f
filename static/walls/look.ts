/**
 * Looks at a wall again and again. One request asks for what all tiles show, and for the curves and loads that wait
 * to be asked for.
 */
import { create } from "zustand";
import { ApiError, request } from "../shared/api";
import type {
  Curve,
  CurveWanted,
  LoadPoint,
  LoadWanted,
  Problem,
  TileState,
  WallLook,
} from "../shared/types";
import { wallPath } from "../shared/wall-tiles";

/** Tiles that appear together ask together. */
const TOGETHER_MS = 50;
/** A bit longer than charts wait before they ask for what is new: each look has their questions. */
const EVERY_MS = 2000 + TOGETHER_MS;
const ANSWER_MS_MAX = 60_000;
/** in one look, as the server has it */
export const CURVES_MAX = 64;

export type Tiles = Pick<WallLook, "at" | "revision" | "tiles">;

interface Received {
  state: Tiles;
  /** by this browser's clock, ms since the epoch */
  at: number;
}

export interface Seen {
  received: Received | undefined;
  error: unknown;
}

export const useSeen = create<Seen>(() => ({ received: undefined, error: null }));

interface Waiting<Wanted, Answer> {
  wanted: Wanted;
  take: (answer: Answer) => void;
  fail: (error: unknown) => void;
}

let wall = "";
let curves: Waiting<CurveWanted, Curve>[] = [];
let loads: Waiting<LoadWanted, LoadPoint[]>[] = [];
let timer = 0;
let asking = false;
/** asked for at once while an answer was awaited */
let hurried = false;

/** Looks at this wall until the returned function is called. */
export function lookAt(id: string): () => void {
  wall = id;
  soon();
  return () => {
    wall = "";
    globalThis.clearTimeout(timer);
    curves = [];
    loads = [];
  };
}

/** Asks at once, or as soon as the answer that is awaited has come. */
export function soon(): void {
  hurried = true;
  if (!asking) plan(TOGETHER_MS);
}

/** Asks for a curve with the next look. */
export const askCurve = (wanted: CurveWanted): Promise<Curve> =>
  new Promise((take, fail) => curves.push({ wanted, take, fail }));

/** Asks for the points of a tile of load with the next look. */
export const askLoad = (wanted: LoadWanted): Promise<LoadPoint[]> =>
  new Promise((take, fail) => loads.push({ wanted, take, fail }));

function plan(ms: number): void {
  globalThis.clearTimeout(timer);
  timer = globalThis.setTimeout(() => void look(), ms) as unknown as number;
}

async function look(): Promise<void> {
  const id = wall;
  if (!id) return;
  if (document.visibilityState !== "visible" && useSeen.getState().received) return plan(EVERY_MS);
  const asked = { curves: curves.slice(0, CURVES_MAX), loads };
  curves = curves.slice(CURVES_MAX);
  loads = [];
  asking = true;
  hurried = curves.length > 0;
  try {
    const body = {
      curves: asked.curves.map(({ wanted }) => wanted),
      loads: asked.loads.map(({ wanted }) => wanted),
    };
    const signal = AbortSignal.timeout(ANSWER_MS_MAX);
    const answer = await request<WallLook>("POST", `${wallPath(id)}/look`, { body, signal });
    if (wall === id) taken(answer, asked);
  } catch (error) {
    if (wall === id) useSeen.setState({ error });
    for (const { fail } of [...asked.curves, ...asked.loads]) fail(error);
  } finally {
    asking = false;
    if (wall) plan(hurried ? TOGETHER_MS : EVERY_MS);
  }
}

function taken(answer: WallLook, asked: { curves: typeof curves; loads: typeof loads }): void {
  const state = withOld(useSeen.getState().received?.state ?? null, answer);
  useSeen.setState({ received: { state, at: Date.now() }, error: null });
  for (const [index, waiting] of asked.curves.entries()) {
    const { curve, problem } = answer.curves[index] ?? { curve: null, problem: null };
    if (problem) waiting.fail(new ApiError(problem as unknown as Problem));
    else if (curve) waiting.take(curve);
    else curves.unshift(waiting); // there was no time for it: it is the first of the next look
  }
  for (const [index, { take, fail }] of asked.loads.entries()) {
    const { points, problem } = answer.loads[index] ?? { points: [], problem: null };
    if (problem) fail(new ApiError(problem as unknown as Problem));
    else take(points);
  }
}

/** The answer, with what tiles showed before where there is a problem now. They say so, and are grey. */
export function withOld(before: Tiles | null, { at, revision, tiles }: Tiles): Tiles {
  const merged = Object.entries(tiles).map(([id, tile]): [string, TileState] => {
    const old = before?.tiles[id];
    const [source] = tile.sources;
    const same = old && source?.problem && sourceOf(old) === sourceOf(tile);
    return [id, same ? { ...tile, figure: tile.figure ?? old.figure, rows: tile.rows ?? old.rows } : tile];
  });
  return { at, revision, tiles: Object.fromEntries(merged) };
}

const sourceOf = ({ sources: [source] }: TileState): string => `${source?.pipeline}/${source?.element}`;
