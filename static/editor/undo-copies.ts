/**
 * The undo and redo steps of each pipeline, kept in this browser so that they survive a reload. They
 * belong to the document that they led to. If the draft has changed since, a step back would silently
 * remove somebody else's changes, so none is offered.
 */
import { mayAct, page } from "../shared/page";
import type { DocElement, PipelineDocument } from "../shared/types";
import { elementsOf } from "../shared/document";
import { mapped, start, type History } from "../shared/history";
import { stable } from "./merge";
import { repinned, repinsOf } from "./pins";
import { useEditor } from "./store";

const PREFIX = "fogline-undo:";
/** What one pipeline may take of the browser's storage, and how many pipelines have some. */
const CHARACTERS_MAX = 800_000;
const PIPELINES_MAX = 4;
const STEPS_MAX = 100;
/** How long after a change they are written. */
const QUIET_MS = 400;

type Steps = History<PipelineDocument>;

/** The documents, stored compactly: most elements are the same from one step to the next. */
interface Packed {
  /** ms since the epoch, of the last change */
  at: number;
  elements: DocElement[];
  /** each document without its elements, and which of `elements` it has */
  documents: [Omit<PipelineDocument, "spec"> & { spec: object }, number[]][];
  /** which of `documents` is shown */
  present: number;
}

/**
 * The steps as text, with as many of the nearest ones in both directions as fit into `characters`; null
 * when not even one fits.
 */
export function pack(history: Steps, at: number, characters = CHARACTERS_MAX): string | null {
  const longest = Math.max(history.past.length, history.future.length);
  for (let steps = Math.min(STEPS_MAX, longest); ; steps = Math.floor(steps / 2)) {
    const before = steps > 0 ? history.past.slice(-steps) : [];
    const after = history.future.slice(0, steps);
    const text = JSON.stringify(packed([...before, history.present, ...after], before.length, at));
    if (text.length <= characters) return text;
    if (steps === 0) return null;
  }
}

function packed(documents: PipelineDocument[], present: number, at: number): Packed {
  const numbers = new Map<string, number>();
  const seen = new Map<DocElement, number>();
  const elements: DocElement[] = [];
  const numberOf = (element: DocElement): number => {
    const known = seen.get(element);
    if (known !== undefined) return known;
    const text = JSON.stringify(element);
    const number = numbers.get(text) ?? elements.push(element) - 1;
    numbers.set(text, number);
    seen.set(element, number);
    return number;
  };
  return {
    at,
    elements,
    documents: documents.map((document) => {
      const { elements: _, ...spec } = document.spec ?? {};
      return [{ ...document, spec }, elementsOf(document).map(numberOf)];
    }),
    present,
  };
}

/** The steps around `document`; null when the text belongs to another document or cannot be read. */
export function unpack(text: string, document: PipelineDocument): Steps | null {
  const { elements, documents, present } = JSON.parse(text) as Packed;
  const all = documents.map(
    ([rest, numbers]) =>
      ({
        ...rest,
        spec: { ...rest.spec, elements: numbers.map((number) => elements[number]) },
      }) as PipelineDocument,
  );
  const shown = all[present];
  const same = shown && stable(shown) === stable(document);
  // the draft may have followed a move in the meantime, which is nobody's step
  const repins = shown && !same ? repinsOf(shown, document) : null;
  if (!same && !repins) return null;
  const steps = { ...start(document), past: all.slice(0, present), future: all.slice(present + 1) };
  return repins ? mapped(steps, (each) => repinned(each, repins)) : steps;
}

/** The key of a user: the next user on this machine must not undo their steps. */
const keyOf = (pipeline: string): string => `${PREFIX}${page.user.username}:${pipeline}`;

/** The steps that led to `document`; null when there are none. */
export function takeHistory(pipeline: string, document: PipelineDocument): Steps | null {
  if (!mayAct("editor")) return null;
  try {
    const text = localStorage.getItem(keyOf(pipeline));
    return text ? unpack(text, document) : null;
  } catch {
    return null; // written by another release, or storage is forbidden: undo starts again
  }
}

/** From now on, keep the steps of the pipeline that is open. */
export function startKeeping(): void {
  if (!mayAct("editor")) return;
  let kept = useEditor.getState().history;
  let timer = 0;
  const keep = () => {
    window.clearTimeout(timer);
    const { history, name } = useEditor.getState();
    if (history === kept) return;
    kept = history;
    write(keyOf(name), pack(history, Date.now()));
  };
  useEditor.subscribe(({ history }) => {
    if (history === kept) return;
    window.clearTimeout(timer);
    timer = window.setTimeout(keep, QUIET_MS);
  });
  window.addEventListener("pagehide", keep);
}

function write(key: string, text: string | null): void {
  try {
    localStorage.removeItem(key);
    if (text === null) return;
    const others = Object.keys(localStorage)
      .filter((each) => each.startsWith(PREFIX))
      .sort((a, b) => atOf(b) - atOf(a));
    for (const old of others.slice(PIPELINES_MAX - 1)) localStorage.removeItem(old);
    localStorage.setItem(key, text);
  } catch {
    // a full or forbidden storage: undo works until the next reload
  }
}

/** When it was written: it stands first in the text. */
const atOf = (key: string): number => Number(/^\{"at":(\d+)/.exec(localStorage.getItem(key) ?? "")?.[1] ?? 0);

/** The pipeline is gone, or has another name. */
export function dropHistory(pipeline: string): void {
  localStorage.removeItem(keyOf(pipeline));
}

/** Its documents name the pipeline. */
export function renameHistory(pipeline: string, next: string): void {
  const text = localStorage.getItem(keyOf(pipeline));
  dropHistory(pipeline);
  if (!text) return;
  const kept = JSON.parse(text) as Packed;
  for (const [document] of kept.documents) document.metadata.name = next;
  write(keyOf(next), JSON.stringify(kept));
}
