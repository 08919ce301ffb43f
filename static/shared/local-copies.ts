/**
 * Drafts that the server does not have yet, kept in this browser. Each tab has a copy of its own, so that two
 * tabs lose nothing of each other.
 */
import type { PipelineDocument } from "./types";

export interface LocalCopy {
  document: PipelineDocument;
  /** what the server had when `document` was begun, and its revision: where a merge starts from */
  base: PipelineDocument;
  revision: number;
  /** ms since the epoch */
  at: number;
}

const TAB = "fogline-tab";
const PREFIX = "fogline-draft:";
const prefixOf = (name: string) => `${PREFIX}${name}:`;

let id: string | null = null;

/**
 * The id of this tab, also after a reload. It is not in a storage in between, because a duplicated tab
 * would have a copy of that.
 */
function tab(): string {
  if (id === null) {
    const mine = sessionStorage.getItem(TAB) ?? Math.random().toString(36).slice(2);
    sessionStorage.removeItem(TAB);
    window.addEventListener("pagehide", () => sessionStorage.setItem(TAB, mine));
    id = mine;
  }
  return id;
}

function keysOf(name: string): string[] {
  return Object.keys(localStorage).filter((key) => key.startsWith(prefixOf(name)));
}

function read(key: string): LocalCopy {
  return JSON.parse(localStorage.getItem(key) ?? "") as LocalCopy;
}

/** Returns whether it is kept: a full or forbidden storage keeps nothing. */
export function keepCopy(name: string, copy: LocalCopy): boolean {
  try {
    localStorage.setItem(prefixOf(name) + tab(), JSON.stringify(copy));
    return true;
  } catch {
    return false;
  }
}

/** The newest copy of each pipeline that the server does not have, by its name. */
export function copiesWithout(there: ReadonlySet<string>): Map<string, LocalCopy> {
  const found = new Map<string, LocalCopy>();
  for (const key of Object.keys(localStorage).filter((each) => each.startsWith(PREFIX))) {
    const name = key.slice(PREFIX.length, key.lastIndexOf(":"));
    const copy = read(key);
    if (!there.has(name) && copy.at > (found.get(name)?.at ?? 0)) found.set(name, copy);
  }
  return found;
}

/**
 * The copy that this tab could not save, else the newest one that another tab has left, which this tab
 * takes over.
 */
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

/** The pipeline is gone. */
export function dropAllCopies(name: string): void {
  for (const key of keysOf(name)) localStorage.removeItem(key);
}

/** The pipeline has a new name: unsaved copies of other tabs get it, too. */
export function renameCopies(name: string, next: string): void {
  const named = (document: PipelineDocument) => ({
    ...document,
    metadata: { ...document.metadata, name: next },
  });
  for (const key of keysOf(name)) {
    const copy = read(key);
    const renamed = { ...copy, document: named(copy.document), base: named(copy.base) };
    localStorage.setItem(prefixOf(next) + key.slice(prefixOf(name).length), JSON.stringify(renamed));
    localStorage.removeItem(key);
  }
}
