import type { DocNote } from "../../shared/types";
import { toast } from "../../shared/ui/toast";
import { commit, current } from "../store";
import type { Flow } from "../view";
import { addNote, NOTES_MAX } from "./notes";

/** Puts a note or a frame into the middle of the canvas, and the cursor into it. */
export function putNote(kind: DocNote["kind"], flow: Flow): void {
  const stage = document.querySelector(".canvas")?.getBoundingClientRect();
  if (!stage) return;
  const { x, y, zoom } = flow.getViewport();
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
  const index = (added.document.spec?.notes?.length ?? 1) - 1;
  window.setTimeout(() => document.querySelectorAll<HTMLElement>(".note__text")[index]?.focus(), 30);
}
