import type { DocNote } from "../../shared/types";
import { toast } from "../../shared/ui/toast";
import { arrangeInLanes, useLanes } from "../lanes/store";
import { commit, current, useEditor } from "../store";
import { canvasBox, placesOf, readableView, type Flow } from "../view";
import { addNote, NOTES_MAX } from "./notes";

/**
 * Puts a note or a frame into the middle of the canvas, and the cursor into it. Lanes have no notes, so the canvas
 * is arranged as drawn first.
 */
export function putNote(kind: DocNote["kind"], flow: Flow): void {
  const stage = canvasBox();
  const inLanes = useLanes.getState().on;
  const drawn = useEditor.getState().nodes.flatMap(placesOf);
  const { x, y, zoom } = inLanes ? readableView(drawn, stage) : flow.getViewport();
  const middle = { x: (stage.width / 2 - x) / zoom, y: (stage.height / 2 - y) / zoom };
  const added = addNote(current(), kind, middle);
  if (!added) {
    toast({
      tone: "error",
      title: "There are too many notes",
      text: `A pipeline has at most ${NOTES_MAX} notes and frames. Remove one first.`,
    });
    return;
  }
  commit(added.document);
  if (inLanes) arrangeInLanes(false);
  const index = (added.document.spec?.notes?.length ?? 1) - 1;
  window.setTimeout(
    () => document.querySelectorAll<HTMLElement>(".note__text")[index]?.focus({ preventScroll: true }),
    30,
  );
}
