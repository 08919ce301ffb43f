/**
 * Drafts that the server does not have yet, kept in this browser. Each tab has a copy of its own, so that two
 * tabs lose nothing of each other.
 */
import type { PipelineDocument } from "../shared/types";

export interface LocalCopy {
  document: PipelineDocument;
  /** what the server had when `document` was begun, and its revision: where a merge starts from */
  base: PipelineDocument;
  revision: number;
  /** ms since the epoch */
  at: number;
}

const TAB = "fogline-tab";
const prefixOf = (name: string) => `fogline-draft:${name}:`;

/** This tab, also after a reload. */
function tab(): string {
  const id = sessionStorage.getItem(TAB) ?? Math.random().toString(36).slice(2);
  sessionStorage.setItem(TAB, id);
  return id;
}

function keysOf(name: string): string[] {
  return Object.keys(localStorage).filter((key) => key.startsWith(prefixOf(name)));
}

function read(key: string): LocalCopy {
  return JSON.parse(localStorage.getItem(key) ?? "") as LocalCopy;
}

export function keepCopy(name: string, copy: LocalCopy): void {
  try {
    localStorage.setItem(prefixOf(name) + tab(), JSON.stringify(copy));
  } catch {
    // a full or forbidden storage: the server's copy is still made
  }
}

/** What this tab could not save, else the newest that another one has left: it is this tab's from now on. */
export function takeCopy(name: string): LocalCopy | null {
  const own = prefixOf(name) + tab();
  if (!localStorage.getItem(own)) {
    const [newest] = keysOf(name).sort((a, b) => read(b).at - read(a).at);
    if (!newest) return null;
    localStorage.setItem(own, localStorage.getItem(newest) ?? "");
    localStorage.removeItem(newest);
  }
  return read(own);
}

/** The server has what this tab has. */
export function dropCopy(name: string): void {
  localStorage.removeItem(prefixOf(name) + tab());
}

/** The pipeline is gone, or has another name. */
export function dropAllCopies(name: string): void {
  for (const key of keysOf(name)) localStorage.removeItem(key);
}
