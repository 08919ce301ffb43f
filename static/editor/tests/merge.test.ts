import { describe, expect, test } from "vitest";
import type { PipelineDocument } from "../../shared/types";
import { elementsOf, findElement, groupsOf } from "../../shared/document";
import { addElement, changeElement, connect, groupElements, moveElements, removeElements } from "../edits";
import { mergeDocuments, stable } from "../merge";
import { DOCUMENT, OPERATORS } from "../../shared/tests/documents";

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

describe("what both added under one id", () => {
  const filter = OPERATORS.get("filter")!;
  const between = (column: string) => {
    const { document } = addElement(DOCUMENT, filter, { x: 0, y: 500 });
    const read = connect(document, { element: "readings", port: "out" }, { element: "filter", port: "in" });
    return changeElement(read, "filter", { params: { column } });
  };
  const withFile = (document: PipelineDocument) => {
    const added = addElement(document, OPERATORS.get("csv-sink")!, { x: 300, y: 500 });
    return connect(added.document, { element: "filter", port: "out" }, { element: "csv-sink", port: "in" });
  };
  const inputs = (document: PipelineDocument) =>
    Object.fromEntries(elementsOf(document).map(({ id, inputs: read }) => [id, read?.in]));

  test("is one where it is the same, wherever it was drawn", () => {
    const moved = moveElements(between("a"), { filter: { x: 9, y: 9 } });
    const { document, conflicts, renamed } = mergeDocuments(DOCUMENT, moved, between("a"));
    expect([conflicts, renamed]).toEqual([[], []]);
    expect(elementsOf(document)).toHaveLength(4);
  });

  test("is two where it differs: mine has another id, and nobody is asked", () => {
    const mine = groupElements(between("mine"), ["filter", "big"]);
    const { document, conflicts, renamed } = mergeDocuments(DOCUMENT, mine, between("theirs"));
    expect([conflicts, renamed]).toEqual([[], [["filter", "filter-2"]]]);
    expect(findElement(document, "filter")?.params).toEqual({ column: "theirs" });
    expect(findElement(document, "filter-2")?.params).toEqual({ column: "mine" });
    expect(groupsOf(document).flatMap((group) => group.elements)).toEqual(["readings", "big", "filter-2"]);
  });

  test("is read by what each side drew to its own, also where that looked the same", () => {
    const { document, conflicts, renamed } = mergeDocuments(
      DOCUMENT,
      withFile(between("mine")),
      withFile(between("theirs")),
    );
    expect(conflicts).toEqual([]);
    expect(renamed).toEqual([
      ["filter", "filter-2"],
      ["csv-sink", "csv-sink-2"],
    ]);
    expect(inputs(document)).toMatchObject({
      filter: "readings",
      "csv-sink": "filter",
      "filter-2": "readings",
      "csv-sink-2": "filter-2",
    });
  });

  test("put into one stream by both, that stream is a choice", () => {
    const drawn = (column: string) =>
      connect(between(column), { element: "filter", port: "out" }, { element: "file", port: "in" });
    const [mine, theirs] = [drawn("mine"), drawn("theirs")];
    const { document, conflicts } = mergeDocuments(DOCUMENT, mine, theirs);
    expect(conflicts).toMatchObject([{ key: "element file", fields: ["inputs.in"] }]);
    expect(inputs(document).file).toBe("filter-2");
    const chosen = mergeDocuments(DOCUMENT, mine, theirs, { "element file": "theirs" }).document;
    expect(inputs(chosen).file).toBe("filter");
  });
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
