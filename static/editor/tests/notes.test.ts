import { describe, expect, test } from "vitest";
import { findElement } from "../../shared/document";
import { DOCUMENT } from "../../shared/tests/documents";
import type { DocNote, PipelineDocument } from "../../shared/types";
import { mergeDocuments } from "../merge";
import {
  addNote,
  changeNote,
  insideOf,
  mergeNotes,
  moveNote,
  notesAround,
  notesOf,
  NOTES_MAX,
  pasteNotes,
  removeNote,
  resizeNote,
  SIDE,
  withNotes,
} from "../notes/notes";

const note = (id: string, change: Partial<DocNote> = {}): DocNote => ({
  id,
  kind: "note",
  text: id,
  colour: "yellow",
  x: 0,
  y: 0,
  width: 100,
  height: 100,
  ...change,
});
const frame = (id: string, x: number, width: number) =>
  note(id, { kind: "frame", x, y: -20, width, height: 200 });
const noted = (...notes: DocNote[]): PipelineDocument => withNotes(DOCUMENT, notes);

describe("notes and frames", () => {
  test("are added around a place, changed and removed, and leave a document as it was", () => {
    const added = addNote(DOCUMENT, "note", { x: 120, y: 56 })!;
    expect(notesOf(added.document)).toMatchObject([{ id: "note", x: 0, y: 0, text: "" }]);
    const changed = changeNote(added.document, added.id, { text: "Why", colour: "blue" });
    expect(notesOf(changed)).toMatchObject([{ text: "Why", colour: "blue" }]);
    expect(removeNote(changed, added.id)).toEqual(DOCUMENT);
  });

  test("there are only so many", () => {
    const full = noted(...Array.from({ length: NOTES_MAX }, (_, n) => note(`n${n}`)));
    expect(addNote(full, "frame", { x: 0, y: 0 })).toBeNull();
  });

  test("a size stays within its bounds", () => {
    const [small] = notesOf(resizeNote(noted(note("a")), "a", { x: -900, y: 10.4 }));
    expect(small).toMatchObject({ width: SIDE.least, height: 110 });
  });

  test("what lies in a frame moves with it, and nothing else", () => {
    // readings lie at 0, big at 320
    const before = noted(frame("f", -20, 300), note("in", { x: 20 }), note("out", { x: 400 }));
    const moved = moveNote(before, "f", { x: 8, y: 16 });
    expect(findElement(moved, "readings")?.ui).toEqual({ x: 8, y: 16 });
    expect(findElement(moved, "big")).toBe(findElement(before, "big"));
    expect(notesOf(moved).map(({ id, x, y }) => [id, x, y])).toEqual([
      ["f", -12, -4],
      ["in", 28, 16],
      ["out", 400, 0],
    ]);
    expect(moveNote(moved, "f", { x: -8, y: -16 })).toEqual(before);
  });

  test("a frame within a frame moves along, and not the other way round", () => {
    const document = noted(frame("outer", -20, 900), frame("inner", 0, 100));
    expect(insideOf(document, "outer").notes).toEqual(new Set(["inner"]));
    expect(insideOf(document, "inner").notes).toEqual(new Set());
  });
});

describe("a copy of elements", () => {
  test("takes the frames along whose elements are all copied, with what lies in them", () => {
    // readings lie at 0, big at 320
    const document = noted(frame("f", -20, 300), note("in", { x: 20 }), note("out", { x: 400 }));
    expect(notesAround(document, new Set(["big"]))).toEqual([]);
    const copied = notesAround(document, new Set(["readings", "big"]));
    expect(copied.map(({ id }) => id)).toEqual(["f", "in"]);
    const pasted = notesOf(pasteNotes(document, copied, { x: 8, y: 16 })).slice(3);
    expect(pasted.map(({ x, y, text }) => [x, y, text])).toEqual([
      [-12, -4, "f"],
      [28, 16, "in"],
    ]);
    expect(new Set(notesOf(pasteNotes(document, copied, { x: 8, y: 16 })).map(({ id }) => id)).size).toBe(5);
  });

  test("never makes more notes than there can be", () => {
    const full = noted(...Array.from({ length: NOTES_MAX - 1 }, (_, n) => note(`n${n}`)));
    expect(notesOf(pasteNotes(full, [note("a"), note("b")], { x: 0, y: 0 }))).toHaveLength(NOTES_MAX);
  });
});

describe("notes of several people", () => {
  const texts = (notes: DocNote[]) => notes.map(({ text }) => text).sort();

  test("what each added, changed or removed counts", () => {
    const base = [note("a"), note("b"), note("c")];
    const mine = [note("a", { text: "mine" }), note("b"), note("new")];
    const theirs = [note("a"), note("b", { text: "theirs" }), note("c"), note("other")];
    expect(texts(mergeNotes(base, mine, theirs))).toEqual(["mine", "new", "other", "theirs"]);
  });

  test("no text is lost: of a note that both rewrote there are two", () => {
    const merged = mergeNotes([note("a")], [note("a", { text: "mine" })], [note("a", { text: "theirs" })]);
    expect(texts(merged)).toEqual(["mine", "theirs"]);
    expect(new Set(merged.map(({ id }) => id)).size).toBe(2);
  });

  test("a note that one removed and the other rewrote stays", () => {
    expect(texts(mergeNotes([note("a")], [], [note("a", { text: "theirs" })]))).toEqual(["theirs"]);
    expect(texts(mergeNotes([note("a")], [note("a", { text: "mine" })], []))).toEqual(["mine"]);
  });

  test("a merge of documents has the notes of both", () => {
    const { document, conflicts } = mergeDocuments(DOCUMENT, noted(note("a")), noted(note("b")));
    expect(conflicts).toEqual([]);
    expect(texts(notesOf(document))).toEqual(["a", "b"]);
  });
});
