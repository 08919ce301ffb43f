/** Moving what is selected by keyboard: the lane is chosen with the arrow keys, in the panel of the move. */
import { elementsOf } from "../../shared/document";
import { toast } from "../../shared/ui/toast";
import { useLive } from "../../shared/live";
import { setMode, shown, useEditor } from "../store";
import { streamOrder } from "./arranged";
import { firstLane } from "./hanging";
import { liveLane } from "./lies";
import { arrangeInLanes, choose, laneLayoutNow, useLanes, whenLaid } from "./store";
import { movable, unitsOf } from "./units";

/** Begins to move what is selected, in lanes. */
export function startMove(): void {
  if (useEditor.getState().mode !== "live") setMode("live");
  if (!useLanes.getState().on) arrangeInLanes(true);
  whenLaid(begin);
}

function begin(): void {
  const layout = laneLayoutNow();
  const state = useEditor.getState();
  const running = new Map((useLive.getState().elements[state.name] ?? []).map((each) => [each.id, each]));
  const document = shown(state);
  const known = new Set(elementsOf(document).map(({ id }) => id));
  const ids = [...state.selected].filter((id) => known.has(id) && movable(running.get(id)));
  const [lead] = ids;
  if (!layout || !lead) {
    toast({ tone: "info", title: "Nothing of the selection runs on a node" });
    return;
  }
  const units = unitsOf(document, ids, streamOrder(layout));
  choose(units, firstLane(layout.lanes, units, liveLane(running.get(lead))));
}
