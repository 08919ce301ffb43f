import { fileOf } from "./files";
import { filesChanged } from "./use-files";
import { openImport, useImport } from "./import-store";

const POLL_MS = 700;

/**
 * Waits until the server has looked at a file, and opens its import if a person has to decide something.
 * `taken` gets the table that the person chooses to make of it.
 */
export async function follow(
  id: string,
  taken: ((reference: string) => void) | null = null,
  pause_ms = POLL_MS,
): Promise<void> {
  for (;;) {
    const file = await fileOf(id).catch(() => null);
    if (!file) return;
    if (file.state !== "looking") {
      filesChanged();
      if (file.state === "asks" && useImport.getState().file === null) openImport(id, taken);
      return;
    }
    await new Promise((resolve) => window.setTimeout(resolve, pause_ms));
  }
}
