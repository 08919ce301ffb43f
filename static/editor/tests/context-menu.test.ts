import { expect, test } from "vitest";
import { sectionsOf } from "../context-menu";

const ids = (...asked: Parameters<typeof sectionsOf>) =>
  sectionsOf(...asked).map((section) => section.map(({ id }) => id));

test("an element's menu has what can be done with it in this mode", () => {
  expect(ids("card", true, 1)).toEqual([
    ["open", "rename", "connect"],
    ["copy", "cut", "duplicate", "sites", "group"],
    ["delete"],
  ]);
  expect(ids("card", false, 1)).toEqual([["open", "move"], ["copy"]]);
});

test("several are aligned, and what is for one alone says why it is not possible", () => {
  const sections = sectionsOf("card", true, 2);
  const flat = sections.flat();
  expect(sections).toHaveLength(4);
  expect(flat.find(({ id }) => id === "rename")?.disabled).toBe("Select one element first.");
  expect(flat.find(({ id }) => id === "row")?.disabled).toBeNull();
  expect(flat.find(({ id }) => id === "across")?.disabled).toBe("Select three elements first.");
});

test("a stream is deleted only while one draws, and the canvas always has what one looks by", () => {
  expect(ids("stream", true, 0)).toEqual([["delete"]]);
  expect(ids("stream", false, 0)).toEqual([]);
  expect(ids("canvas", true, 0)).toEqual([
    ["search", "note", "frame", "paste", "arrange"],
    ["undo", "redo"],
    ["all", "fit", "keys"],
  ]);
  expect(ids("canvas", false, 0)).toEqual([["all", "fit", "keys"]]);
});
