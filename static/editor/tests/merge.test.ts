import { expect, test } from "vitest";
import { addElement, changeElement, findElement, removeElements } from "../document";
import { mergeDocuments, stable } from "../merge";
import { DOCUMENT, OPERATORS } from "./fixtures";

test("changes of different elements are both kept", () => {
  const yours = changeElement(DOCUMENT, "big", { title: "Mine" });
  const theirs = addElement(changeElement(DOCUMENT, "file", { title: "Theirs" }), OPERATORS.get("filter")!, {
    x: 0,
    y: 500,
  }).document;
  const { document, conflicts } = mergeDocuments(DOCUMENT, yours, theirs);
  expect(conflicts).toEqual([]);
  expect(findElement(document, "big")?.title).toBe("Mine");
  expect(findElement(document, "file")?.title).toBe("Theirs");
  expect(findElement(document, "filter")).toBeDefined();
});

test("the same element changed twice is a conflict, and yours is taken", () => {
  const { document, conflicts } = mergeDocuments(
    DOCUMENT,
    changeElement(DOCUMENT, "big", { title: "A" }),
    changeElement(DOCUMENT, "big", { title: "B" }),
  );
  expect(conflicts).toEqual(["big"]);
  expect(findElement(document, "big")?.title).toBe("A");
});

test("removed there and untouched here is removed; changed here is a conflict", () => {
  const theirs = removeElements(DOCUMENT, ["file"]);
  expect(findElement(mergeDocuments(DOCUMENT, DOCUMENT, theirs).document, "file")).toBeUndefined();
  const yours = changeElement(DOCUMENT, "file", { title: "Keep" });
  expect(mergeDocuments(DOCUMENT, yours, theirs).conflicts).toEqual(["file"]);
});

test("the order of keys and absent values make no difference", () => {
  expect(stable({ b: 1, a: { d: null, c: 2 } })).toBe(stable({ a: { c: 2 }, b: 1 }));
});
