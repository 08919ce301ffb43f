/** The queue of a pipeline's moves. The server keeps it, and control orders each when the one before it is done. */
import { post } from "../../shared/api";
import { listed, ordinal } from "../../shared/format";
import { nameOf } from "../../shared/status";
import type { LiveElement, QueuedMove } from "../../shared/types";
import { toastError } from "../../shared/ui/toast";

const queuePath = (pipeline: string): string => `/pipelines/${encodeURIComponent(pipeline)}/moves`;

/** Puts the moves behind those that wait. */
export async function orderMoves(
  pipeline: string,
  moves: readonly { element: string; target: string }[],
): Promise<void> {
  try {
    await post(queuePath(pipeline), { moves });
  } catch (error) {
    toastError("Nothing was moved", error);
  }
}

/** Cancels a move that waits; all of them if none is named. */
export async function cancelWaiting(pipeline: string, id?: number): Promise<void> {
  try {
    await post(`${queuePath(pipeline)}${id === undefined ? "" : `/${id}`}/cancel`);
  } catch (error) {
    toastError("Not cancelled", error);
  }
}

/** Pure: the names of all that move with an element: "power and alarm". */
export function titleOf(elements: readonly LiveElement[], id: string): string {
  const lead = elements.find((each) => each.id === id);
  const together = elements.filter((each) => lead !== undefined && each.group === lead.group);
  return together.length ? listed(together.map(nameOf)) : id;
}

/** Pure: "2nd of 4, waits for power" */
export function placeWords(move: QueuedMove, elements: readonly LiveElement[]): string {
  return `${ordinal(move.place)} of ${move.of}, ${waitWords(move, elements)}`;
}

/** Pure: the place of each move that waits, as sentences; empty when none does. */
export function placesTold(moves: readonly QueuedMove[], elements: readonly LiveElement[]): string {
  return moves
    .filter(({ state }) => state === "waits")
    .map((move) => `${titleOf(elements, move.element)} to ${move.target}: ${placeWords(move, elements)}.`)
    .join(" ");
}

/** Pure: what a move waits for. */
function waitWords(move: QueuedMove, elements: readonly LiveElement[]): string {
  if (move.waits_for !== null) return `waits for ${titleOf(elements, move.waits_for)}`;
  return move.message ? `waits: ${move.message}` : "waits";
}

/** Pure: the moves that still wait for their turn, of the group of an element. */
export function waitingOf(
  moves: readonly QueuedMove[],
  elements: readonly LiveElement[],
  id: string,
): QueuedMove | undefined {
  const group = elements.find((each) => each.id === id)?.group;
  return moves.find(
    ({ state, element }) =>
      state === "waits" && (element === id || elements.find((each) => each.id === element)?.group === group),
  );
}
