import { toast } from "../ui/toast";
import { fileOf } from "./files";
import type { StoredFile } from "./types";
import { isBusy } from "./words";
import { filesChanged } from "./use-files";
import { openImport, useImport } from "./import-store";

const POLL_MS = 700;

/**
 * Waits until a file is imported. If a person has to decide something before, its import is opened; what only
 * the whole file shows is told, for the person may do something else by then. `taken` gets the table that the
 * person chooses to make of it.
 */
export async function follow(
  id: string,
  taken: ((reference: string) => void) | null = null,
  pause_ms = POLL_MS,
): Promise<void> {
  for (let looked = false; ;) {
    const file = await fileOf(id).catch(() => null);
    if (!file) return;
    if (!isBusy(file)) {
      filesChanged();
      if (file.state !== "asks") return;
      if (!looked && useImport.getState().file === null) openImport(id, taken);
      else if (useImport.getState().file !== id) ask(file, taken);
      return;
    }
    looked = file.state === "importing";
    await new Promise((resolve) => window.setTimeout(resolve, pause_ms));
  }
}

const ask = (file: StoredFile, taken: ((reference: string) => void) | null) =>
  toast({
    tone: "info",
    title: `${file.name} can be read in two ways`,
    text: "Only the whole file has shown it. It is not replayed before you have decided.",
    actions: [{ title: "Answer its questions", run: () => openImport(file.id, taken) }],
  });
