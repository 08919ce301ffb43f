import { useState, type DragEvent } from "react";
import { mayAct } from "../page";

const hasFiles = (event: DragEvent): boolean => event.dataTransfer.types.includes("Files");

/** Takes files that are dropped onto an element. */
export function useDropped(take: (file: File) => void) {
  const [over, setOver] = useState(false);
  const on = {
    onDragOver: (event: DragEvent) => {
      if (!hasFiles(event) || !mayAct("editor")) return;
      event.preventDefault();
      event.stopPropagation();
      event.dataTransfer.dropEffect = "copy";
      setOver(true);
    },
    onDragLeave: (event: DragEvent<HTMLElement>) => {
      if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
    },
    onDrop: (event: DragEvent) => {
      if (!hasFiles(event) || !mayAct("editor")) return;
      event.preventDefault();
      event.stopPropagation();
      setOver(false);
      for (const file of event.dataTransfer.files) take(file);
    },
  };
  return { over, on };
}
