/** What becomes of elements that are dropped on a lane: a move to be confirmed, or a pin in the draft. */
import { nodeRefusal, refusal } from "../../shared/actions";
import type { LiveElement, Operator, PipelineDocument } from "../../shared/types";
import { useLive } from "../../shared/live";
import { nameOf } from "../../shared/status";
import { changeElement } from "../edits";
import { commit, current, useEditor } from "../store";
import { ANYWHERE } from "./lies";
import { orderMoves, waitingOf } from "./moves";
import { choose, letGo, useLanes, type Hanging } from "./store";
import { unitWords, type Unit } from "./units";

export const nodeOf = (lane: string | null): string | null =>
  lane?.startsWith("node ") ? lane.slice("node ".length) : null;

const siteOf = (lane: string): string | null =>
  lane.startsWith("site ") ? lane.slice("site ".length) : null;

const elementNow = (id: string): LiveElement | undefined =>
  useLive.getState().elements[useEditor.getState().name]?.find((element) => element.id === id);

/** Why a unit cannot go to a node now; null when it can. */
export function unitRefusal(unit: Unit, target: string): string | null {
  const element = elementNow(unit.lead);
  if (!element) return "It does not run.";
  const { nodes, moves, elements } = useLive.getState();
  const { name: pipeline } = useEditor.getState();
  const queue = moves.filter((move) => move.pipeline === pipeline);
  const waiting = waitingOf(queue, elements[pipeline] ?? [], unit.lead);
  if (waiting) return `It waits already, to move to ${waiting.target}. Cancel that first.`;
  const node = nodes.find(({ name }) => name === target);
  const refused = refusal(element.actions.migrate);
  return refused ?? (node ? nodeRefusal(node, element.node) : "That node is no longer registered.");
}

/** Whether all of it runs on the node already. */
export const liesOn = (units: readonly Unit[], node: string): boolean =>
  units.every(({ lead }) => elementNow(lead)?.node === node);

const nameOfId = (id: string): string => {
  const element = elementNow(id);
  return element ? nameOf(element) : id;
};

/** The names of what moves together: "power and alarm". */
export const wordsOf = (unit: Unit): string => unitWords(unit, nameOfId);

/** The units that can go to the node now. What lies there already is none of them. */
export const goingTo = (units: readonly Unit[], target: string): Unit[] =>
  units.filter((unit) => unitRefusal(unit, target) === null);

/** Orders the moves that were chosen, one after another. */
export function confirmMoves(units: readonly Unit[], target: string): void {
  letGo();
  const going = goingTo(units, target);
  if (going.length === 0) return;
  const moves = going.map(({ lead }) => ({ element: lead, target }));
  void orderMoves(useEditor.getState().name, moves);
}

/** Pure: the document with the elements pinned to the lane's node, put to its site, or left to Fogline. A view
 * stays as it is, since no node runs it. */
export function pinned(
  document: PipelineDocument,
  ids: Iterable<string>,
  lane: string,
  operators: ReadonlyMap<string, Pick<Operator, "view">>,
): PipelineDocument {
  const place = { node: nodeOf(lane), site: siteOf(lane) };
  let changed = document;
  for (const id of ids) {
    const element = document.spec?.elements?.find((each) => each.id === id);
    const same = (element?.node ?? null) === place.node && (element?.site ?? null) === place.site;
    if (element && !same && !operators.get(element.type)?.view) changed = changeElement(changed, id, place);
  }
  return changed;
}

export function drop({ units, over }: Hanging): void {
  if (over === null) return letGo();
  if (useEditor.getState().mode === "edit") {
    letGo();
    const takes = nodeOf(over) !== null || siteOf(over) !== null || over === ANYWHERE;
    if (takes)
      commit(
        pinned(
          current(),
          units.flatMap(({ members }) => members),
          over,
          useEditor.getState().operators,
        ),
      );
    return;
  }
  const target = nodeOf(over);
  const elsewhere = units.filter(({ lead }) => elementNow(lead)?.node !== target);
  if (target === null || elsewhere.length === 0) return letGo();
  if (useLanes.getState().atOnce && goingTo(elsewhere, target).length === elsewhere.length)
    return confirmMoves(elsewhere, target);
  choose(elsewhere, over);
}
