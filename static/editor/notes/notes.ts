/** Notes and frames of a document. Pure; lengths and places are those of the canvas. */
import { elementsOf, placeOf } from "../../shared/document";
import type { DocNote, PipelineDocument } from "../../shared/types";
import { freshId, moveElements } from "../edits";
import { CARD, snap, type Point } from "../places";

/** As `pipeline_runtime/model/document.py` has them. */
export const NOTES_MAX = 100;
export const TEXT_MAX = { note: 2000, frame: 120 };
export const SIDE = { least: 60, most: 6000 };
export const COLOURS = ["grey", "blue", "orange", "green", "pink", "yellow"] as const;

const SIZES = { note: { width: 240, height: 112 }, frame: { width: 640, height: 320 } };

const NO_NOTES: DocNote[] = [];

export const notesOf = (document: PipelineDocument): DocNote[] => document.spec?.notes ?? NO_NOTES;

export function withNotes(document: PipelineDocument, notes: DocNote[]): PipelineDocument {
  const { notes: _, ...spec } = document.spec ?? {};
  return { ...document, spec: notes.length > 0 ? { ...spec, notes } : spec };
}

/** With a new one around a place; null if there are as many as there can be. */
export function addNote(
  document: PipelineDocument,
  kind: DocNote["kind"],
  around: Point,
): { document: PipelineDocument; id: string } | null {
  const notes = notesOf(document);
  if (notes.length >= NOTES_MAX) return null;
  const id = freshId(
    notes.map((note) => note.id),
    kind,
  );
  const { width, height } = SIZES[kind];
  const at = snap({ x: around.x - width / 2, y: around.y - height / 2 });
  const note: DocNote = {
    id,
    kind,
    text: "",
    colour: kind === "note" ? "yellow" : "grey",
    ...at,
    width,
    height,
  };
  return { document: withNotes(document, [...notes, note]), id };
}

export function changeNote(
  document: PipelineDocument,
  id: string,
  change: Partial<Pick<DocNote, "text" | "colour">>,
): PipelineDocument {
  return withNotes(
    document,
    notesOf(document).map((note) => (note.id === id ? { ...note, ...change } : note)),
  );
}

export const removeNote = (document: PipelineDocument, id: string): PipelineDocument =>
  withNotes(
    document,
    notesOf(document).filter((note) => note.id !== id),
  );

/** Gives it another size, within what is possible. */
export function resizeNote(document: PipelineDocument, id: string, by: Point): PipelineDocument {
  const side = (length: number) => Math.round(Math.min(SIDE.most, Math.max(SIDE.least, length)));
  const resized = (note: DocNote): DocNote => ({
    ...note,
    width: side(note.width + by.x),
    height: side(note.height + by.y),
  });
  return withNotes(
    document,
    notesOf(document).map((note) => (note.id === id ? resized(note) : note)),
  );
}

/** Moves it; what lies in a frame moves along. */
export function moveNote(document: PipelineDocument, id: string, by: Point): PipelineDocument {
  const within = insideOf(document, id);
  const moved = notesOf(document).map((note) =>
    note.id === id || within.notes.has(note.id)
      ? { ...note, x: Math.round(note.x + by.x), y: Math.round(note.y + by.y) }
      : note,
  );
  const places = elementsOf(document).flatMap((element) => {
    const place = placeOf(element);
    return place && within.elements.has(element.id)
      ? [[element.id, { x: Math.round(place.x + by.x), y: Math.round(place.y + by.y) }] as const]
      : [];
  });
  return withNotes(moveElements(document, Object.fromEntries(places)), moved);
}

/** What lies in a frame: its middle does, and a frame does as a whole. In a note lies nothing. */
export function insideOf(
  document: PipelineDocument,
  id: string,
): { elements: ReadonlySet<string>; notes: ReadonlySet<string> } {
  const frame = notesOf(document).find((note) => note.id === id && note.kind === "frame");
  if (!frame) return { elements: new Set(), notes: new Set() };
  const has = ({ x, y }: Point): boolean =>
    x >= frame.x && y >= frame.y && x <= frame.x + frame.width && y <= frame.y + frame.height;
  const middle = ({ x, y }: Point, { width, height }: { width: number; height: number }): Point => ({
    x: x + width / 2,
    y: y + height / 2,
  });
  const card = { width: CARD.width, height: CARD.draftHeight };
  return {
    elements: new Set(
      elementsOf(document).flatMap((element) => {
        const place = placeOf(element);
        return place && has(middle(place, card)) ? [element.id] : [];
      }),
    ),
    notes: new Set(
      notesOf(document).flatMap((note) => {
        const end = { x: note.x + note.width, y: note.y + note.height };
        const lies = note.kind === "frame" ? has(note) && has(end) : has(middle(note, note));
        return note.id !== id && lies ? [note.id] : [];
      }),
    ),
  };
}

/** The frames whose elements are all among these, with what lies in them: they are copied along. */
export function notesAround(document: PipelineDocument, ids: ReadonlySet<string>): DocNote[] {
  const copied = new Set<string>();
  for (const { id } of notesOf(document)) {
    const { elements, notes } = insideOf(document, id);
    if (elements.size === 0 || ![...elements].every((each) => ids.has(each))) continue;
    for (const each of [id, ...notes]) copied.add(each);
  }
  return notesOf(document).filter(({ id }) => copied.has(id));
}

/** With copies of the notes, as many as there can be. */
export function pasteNotes(
  document: PipelineDocument,
  copied: readonly DocNote[],
  by: Point,
): PipelineDocument {
  const notes = [...notesOf(document)];
  for (const note of copied.slice(0, NOTES_MAX - notes.length)) {
    const id = freshId(
      notes.map((each) => each.id),
      note.kind,
    );
    notes.push({ ...note, id, x: note.x + by.x, y: note.y + by.y });
  }
  return withNotes(document, notes);
}

/**
 * The notes of two people who changed one document. If both changed the same note, both notes stay, so that no
 * text is lost without a word; where both only placed it, mine counts.
 */
export function mergeNotes(base: DocNote[], mine: DocNote[], theirs: DocNote[]): DocNote[] {
  const [was, ours, others] = [base, mine, theirs].map(
    (notes) => new Map(notes.map((note) => [note.id, note])),
  ) as [Map<string, DocNote>, Map<string, DocNote>, Map<string, DocNote>];
  const taken = [...was.keys(), ...ours.keys(), ...others.keys()];
  const merged: DocNote[] = [];
  for (const id of new Set([...ours.keys(), ...others.keys()])) {
    const [before, own, other] = [was.get(id), ours.get(id), others.get(id)];
    const ownSame = same(own, before);
    const kept = ownSame ? other : own;
    if (kept) merged.push(kept);
    if (ownSame || same(other, before) || same(own, other)) continue;
    if (!own && other)
      merged.push(other); // removed here, rewritten there
    else if (own && other && own.text !== other.text) {
      const copy = freshId(taken, id);
      taken.push(copy);
      merged.push({ ...other, id: copy, x: other.x + 24, y: other.y + 24 });
    }
  }
  return merged.slice(0, NOTES_MAX);
}

const same = (a: DocNote | undefined, b: DocNote | undefined): boolean =>
  a === b ||
  (!!a &&
    !!b &&
    Object.keys({ ...a, ...b }).every((key) => a[key as keyof DocNote] === b[key as keyof DocNote]));
