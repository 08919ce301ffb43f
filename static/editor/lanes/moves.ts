/** Several moves, one after another: the next is ordered when the one before it has ended. */
import { create } from "zustand";
import { elementPath, post } from "../../shared/api";
import { useLive } from "../../shared/live";
import type { MoveWay } from "../../shared/forecast";
import type { Handover } from "../../shared/types";
import { toastError } from "../../shared/ui/toast";

export interface Move {
  pipeline: string;
  element: string;
  /** of all that move with it */
  title: string;
  target: string;
  way: MoveWay;
  state: "waits" | "moving" | "done" | "failed" | "cancelled" | "left out";
  /** of its order; null before it */
  handover: string | null;
}

/** The moves that were ordered together, in their order. */
export const useMoves = create<{ moves: readonly Move[] }>(() => ({ moves: [] }));

/** Pure: the moves after one of them has ended. Those behind a move that did not end as ordered are left out. */
export function ended(moves: readonly Move[], handover: Pick<Handover, "id" | "outcome">): readonly Move[] {
  const { outcome } = handover;
  const at = moves.findIndex((move) => move.handover === handover.id && move.state === "moving");
  if (outcome === null || at < 0) return moves;
  return moves.map((move, index) => {
    if (index === at) return { ...move, state: outcome };
    return index > at && outcome !== "done" && move.state === "waits" ? { ...move, state: "left out" } : move;
  });
}

/** Pure: the move to be ordered now; undefined while one is under way. */
export const next = (moves: readonly Move[]): Move | undefined =>
  moves.some(({ state }) => state === "moving") ? undefined : moves.find(({ state }) => state === "waits");

const put = (move: Move, change: Partial<Move>): void =>
  useMoves.setState(({ moves }) => ({
    moves: moves.map((each) =>
      each.element === move.element && each.target === move.target ? { ...each, ...change } : each,
    ),
  }));

async function orderNext(): Promise<void> {
  const move = next(useMoves.getState().moves);
  if (!move) return;
  put(move, { state: "moving" });
  try {
    const path = `${elementPath(move.pipeline, move.element)}/migrate`;
    const { handover } = await post<{ handover: Handover }>(path, {
      target: move.target,
      strategy: move.way,
    });
    put(move, { handover: handover.id });
    look();
  } catch (error) {
    put(move, { state: "failed" });
    leaveOut();
    toastError(`${move.title} was not moved`, error);
  }
}

/** Takes what has ended, and orders what comes next. */
function look(): void {
  const { moves } = useMoves.getState();
  const after = useLive.getState().handovers.reduce(ended, moves);
  if (after === moves) return;
  useMoves.setState({ moves: after });
  void orderNext();
}

/** A page that is closed orders nothing more. */
const warn = (event: BeforeUnloadEvent): void => {
  if (useMoves.getState().moves.some(({ state }) => state === "waits")) event.preventDefault();
};

/** Orders the moves, each when the one before it is done. They come after those that still wait. */
export function moveAll(moves: readonly Move[]): void {
  const before = useMoves.getState().moves.filter(({ state }) => state === "waits" || state === "moving");
  useMoves.setState({ moves: [...before, ...moves] });
  window.addEventListener("beforeunload", warn);
  void orderNext();
}

/** Those that still wait are not ordered any more. */
export const leaveOut = (): void =>
  useMoves.setState(({ moves }) => ({
    moves: moves.map((move) => (move.state === "waits" ? { ...move, state: "left out" } : move)),
  }));

/** Forgets what has ended. */
export const clearMoves = (): void =>
  useMoves.setState(({ moves }) => ({
    moves: moves.filter(({ state }) => state === "waits" || state === "moving"),
  }));

useLive.subscribe(look);
