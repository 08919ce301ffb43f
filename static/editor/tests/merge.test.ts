import { expect, test } from "vitest";
import type { PipelineDocument } from "../../shared/types";
import { addElement, changeElement, findElement, groupsOf, moveElements, removeElements } from "../document";
import { mergeDocuments, stable } from "../merge";
import { DOCUMENT, OPERATORS } from "./fixtures";

const keys = (base: PipelineDocument, mine: PipelineDocument, theirs: PipelineDocument) =>
  mergeDocuments(base, mine, theirs).conflicts.map(({ key }) => key);

const grouped = (...groups: [string, string[]][]): PipelineDocument => ({
  ...DOCUMENT,
  spec: { ...DOCUMENT.spec, groups: groups.map(([id, elements]) => ({ id, elements })) },
});

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

test("of one element, what one side alone changed is kept whichever side is chosen", () => {
  const yours = changeElement(DOCUMENT, "big", { params: { column: "mine" }, node: "edge-a" });
  const theirs = changeElement(DOCUMENT, "big", { params: { column: "theirs", other: 1 }, title: "Theirs" });
  const { conflicts, document } = mergeDocuments(DOCUMENT, yours, theirs);
  expect(conflicts).toMatchObject([{ key: "element big", fields: ["params.column"] }]);
  const both = { node: "edge-a", title: "Theirs" };
  expect(findElement(document, "big")).toMatchObject({ ...both, params: { column: "mine", other: 1 } });
  const chosen = mergeDocuments(DOCUMENT, yours, theirs, { "element big": "theirs" }).document;
  expect(findElement(chosen, "big")).toMatchObject({ ...both, params: { column: "theirs", other: 1 } });
});

test("a field that one side took away is gone, and one that both changed can be gone by choice", () => {
  const named = changeElement(DOCUMENT, "big", { title: "Old" });
  const yours = changeElement(named, "big", { title: "" });
  expect(findElement(mergeDocuments(named, yours, named).document, "big")?.title).toBeUndefined();
  const theirs = changeElement(named, "big", { title: "New" });
  expect(findElement(mergeDocuments(named, yours, theirs).document, "big")?.title).toBeUndefined();
  const chosen = mergeDocuments(named, yours, theirs, { "element big": "theirs" }).document;
  expect(findElement(chosen, "big")?.title).toBe("New");
});

test("where both drew an element is nothing to ask about", () => {
  const yours = moveElements(DOCUMENT, { big: { x: 8, y: 8 } });
  const theirs = moveElements(DOCUMENT, { big: { x: 80, y: 80 } });
  const { conflicts, document } = mergeDocuments(DOCUMENT, yours, theirs);
  expect(conflicts).toEqual([]);
  expect(findElement(document, "big")?.ui).toEqual({ x: 8, y: 8 });
  expect(
    keys(DOCUMENT, removeElements(DOCUMENT, ["file"]), moveElements(DOCUMENT, { file: { x: 1, y: 1 } })),
  ).toEqual([]);
});

test("removed there and untouched here is removed; changed here it is a choice", () => {
  const theirs = removeElements(DOCUMENT, ["file"]);
  expect(findElement(mergeDocuments(DOCUMENT, DOCUMENT, theirs).document, "file")).toBeUndefined();
  const yours = changeElement(DOCUMENT, "file", { title: "Keep" });
  expect(mergeDocuments(DOCUMENT, yours, theirs).conflicts).toMatchObject([
    { key: "element file", fields: [] },
  ]);
  expect(findElement(mergeDocuments(DOCUMENT, yours, theirs).document, "file")?.title).toBe("Keep");
  const chosen = mergeDocuments(DOCUMENT, yours, theirs, { "element file": "theirs" }).document;
  expect(findElement(chosen, "file")).toBeUndefined();
});

test("an element that both added under one name is taken from one of them", () => {
  const yours = changeElement(
    addElement(DOCUMENT, OPERATORS.get("filter")!, { x: 0, y: 500 }).document,
    "filter",
    {
      params: { column: "a" },
    },
  );
  const theirs = addElement(DOCUMENT, OPERATORS.get("filter")!, { x: 0, y: 500 }).document;
  expect(keys(DOCUMENT, yours, theirs)).toEqual(["element filter"]);
  expect(keys(DOCUMENT, yours, yours)).toEqual([]);
});

test("each group is a choice of its own, as long as no element comes into two of them", () => {
  const base = grouped(["one", ["readings", "big"]]);
  expect(keys(base, grouped(["one", ["readings"]]), base)).toEqual([]);
  const [mine, theirs] = [grouped(["one", ["readings"]]), grouped(["one", ["big"]])];
  expect(keys(base, mine, theirs)).toEqual(["group one"]);
  const chosen = mergeDocuments(base, mine, theirs, { "group one": "theirs" }).document;
  expect(groupsOf(chosen)).toEqual([{ id: "one", elements: ["big"] }]);
  const crossing = [grouped(["a", ["readings", "big"]]), grouped(["b", ["big", "file"]])] as const;
  expect(keys(grouped(), ...crossing)).toEqual(["groups"]);
  expect(groupsOf(mergeDocuments(grouped(), ...crossing, { groups: "theirs" }).document)).toEqual([
    { id: "b", elements: ["big", "file"] },
  ]);
});

test("a group loses what the merge has removed", () => {
  const theirs = removeElements(DOCUMENT, ["big"]);
  const { document, conflicts } = mergeDocuments(
    DOCUMENT,
    changeElement(DOCUMENT, "file", { title: "F" }),
    theirs,
  );
  expect(conflicts.map(({ key }) => key)).toEqual([]);
  expect(groupsOf(document)).toEqual([{ id: "edge-part", elements: ["readings"] }]);
});

test("the order of keys and absent values make no difference", () => {
  expect(stable({ b: 1, a: { d: null, c: 2 } })).toBe(stable({ a: { c: 2 }, b: 1 }));
});
