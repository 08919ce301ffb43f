/** Files on their way to the server: each can be watched, cancelled and sent again. */
import { create } from "zustand";
import { problemText, upload } from "../api";
import type { StoredFile } from "./types";
import { filesChanged } from "./use-files";

export interface Upload {
  id: number;
  /** where it is shown, such as a parameter of an element; null: among all files */
  owner: string | null;
  name: string;
  /** bytes */
  size: number;
  sent: number;
  started_ms: number;
  /** why it failed; null while it runs */
  failed: string | null;
  cancel: () => void;
  retry: () => void;
}

export const useUploads = create<{ uploads: readonly Upload[] }>(() => ({ uploads: [] }));

let next = 1;

const change = (id: number, part: Partial<Upload>) =>
  useUploads.setState(({ uploads }) => ({
    uploads: uploads.map((each) => (each.id === id ? { ...each, ...part } : each)),
  }));

const remove = (id: number) =>
  useUploads.setState(({ uploads }) => ({ uploads: uploads.filter((each) => each.id !== id) }));

/** Sends a file. `taken` gets it when the server has it; nothing is called when it is cancelled. */
export function startUpload(
  file: File,
  taken: (stored: StoredFile) => void,
  owner: string | null = null,
): void {
  const id = next++;
  let ended = new AbortController();
  const send = () => {
    ended = new AbortController();
    const { signal } = ended;
    change(id, { sent: 0, failed: null, started_ms: Date.now() });
    const form = new FormData();
    form.append("file", file);
    upload<StoredFile>(
      "/files",
      form,
      (sent) => change(id, { sent: Math.min(sent, file.size) }),
      signal,
    ).then(
      (stored) => {
        remove(id);
        filesChanged();
        taken(stored);
      },
      (error: unknown) => signal.aborted || change(id, { failed: problemText(error) }),
    );
  };
  const cancel = () => {
    ended.abort();
    remove(id);
  };
  const begun: Upload = {
    id,
    owner,
    name: file.name,
    size: file.size,
    sent: 0,
    started_ms: Date.now(),
    failed: null,
    cancel,
    retry: send,
  };
  useUploads.setState(({ uploads }) => ({ uploads: [...uploads, begun] }));
  send();
}
