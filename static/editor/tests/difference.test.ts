import { describe, expect, test } from "vitest";
import type { Operator } from "../../shared/types";
import { changeElement, connect, moveElements, removeElements } from "../edits";
import { counted, difference, inWords, streamMarks, withRemoved } from "../difference";
import { toEdges } from "../flow";
import { DOCUMENT, OPERATORS } from "../../shared/tests/documents";
import { elementsOf } from "../../shared/document";

const operators = new Map<string, Operator>([
  ...OPERATORS,
  [
    "filter",
    {
      ...OPERATORS.get("filter")!,
      params_schema: {
        properties: {
          column: { type: "string", title: "Column" },
          size_s: { type: "number", title: "Size S" },
          aggregates: { type: "array", items: { type: "object" } },
        },
      },
    },
  ],
]);
const changed = (params: Record<string, unknown>, before: Record<string, unknown> = {}) => {
  const document = changeElement(DOCUMENT, "big", { params: before });
  return difference(document, changeElement(document, "big", { params }), operators).elements[0]?.changes;
};

test("values are said with the form's titles and units", () => {
  expect(changed({ size_s: 2 }, { size_s: 1 })).toEqual([{ what: "Size", from: "1 s", to: "2 s" }]);
  expect(changed({ column: "a" })).toEqual([{ what: "Column", from: null, to: "a" }]);
  expect(changed({ odd_name: true })).toEqual([{ what: "Odd name", from: null, to: "yes" }]);
});

test("of a list only what differs is said, and never as JSON", () => {
  const avg = { function: "avg", column: "v", as: "average" };
  const max = { function: "max", column: "v", as: null };
  expect(changed({ aggregates: [avg, max] }, { aggregates: [avg] })).toEqual([
    { what: "Aggregates", from: null, to: "function max, column v" },
  ]);
  expect(changed({ aggregates: [max, avg] }, { aggregates: [avg, max] })).toHaveLength(1);
  expect(inWords([])).toBe("none");
  expect(inWords({ a: [1, 2], b: "" })).toBe("a 1, 2, b empty");
});

test("elements that come, change and go, by their names; places do not count", () => {
  const before = changeElement(DOCUMENT, "big", { title: "Big ones" });
  const after = changeElement(
    removeElements(moveElements(before, { readings: { x: 9, y: 9 } }), ["file"]),
    "big",
    {
      node: "edge-a",
      inputs: {},
    },
  );
  const found = difference(before, after, operators);
  expect(found.elements).toEqual([
    {
      id: "big",
      name: "Big ones",
      change: "changed",
      changes: [
        { what: "Node", from: null, to: "edge-a" },
        { what: "Input", from: "readings", to: null },
      ],
    },
    { id: "file", name: "file", change: "removed", changes: [] },
  ]);
  expect(counted(found)).toBe("1 changed, 1 removed");
  expect(difference(after, before, operators).elements.map(({ id, change }) => [id, change])).toContainEqual([
    "file",
    "added",
  ]);
  expect(elementsOf(withRemoved(after, before)).map(({ id }) => id)).toEqual(["readings", "big", "file"]);
});

test("what runs as one, and what it is for, is of the pipeline", () => {
  const { groups: _, ...spec } = DOCUMENT.spec ?? {};
  const after = { ...DOCUMENT, metadata: { ...DOCUMENT.metadata, description: "For tests" }, spec };
  expect(difference(DOCUMENT, after, operators).pipeline).toEqual([
    { what: "Description", from: null, to: "For tests" },
    { what: "Runs as one", from: "readings, big", to: null },
  ]);
});

describe("streams that came and went", () => {
  const big = { element: "big", port: "out" };
  const readings = { element: "readings", port: "out" };
  const file = { element: "file", port: "in" };
  const ends = (...documents: Parameters<typeof streamMarks>) =>
    streamMarks(...documents).map(({ from, to, mark }) => [from.element, to.element, mark]);

  test("one that begins elsewhere now is both, also where an element was put between", () => {
    const rewired = connect(DOCUMENT, readings, file);
    expect(ends(DOCUMENT, rewired)).toEqual([
      ["readings", "file", "added"],
      ["big", "file", "removed"],
    ]);
    expect(ends(DOCUMENT, connect(DOCUMENT, big, file))).toEqual([]);
    const written = changeElement(DOCUMENT, "file", { inputs: { in: "big.out" } });
    expect(ends(DOCUMENT, written)).toEqual([]);
  });

  test("those of an element that went are gone with it, though another still names it", () => {
    const left = { ...DOCUMENT, spec: { elements: elementsOf(DOCUMENT).filter(({ id }) => id !== "big") } };
    expect(ends(DOCUMENT, left)).toEqual([
      ["readings", "big", "removed"],
      ["big", "file", "removed"],
    ]);
    expect(ends(left, DOCUMENT).map(([, , mark]) => mark)).toEqual(["added", "added"]);
  });

  test("are drawn with their marks, those that went besides the document's own", () => {
    const rewired = connect(DOCUMENT, readings, file);
    const marks = streamMarks(DOCUMENT, rewired);
    const edges = toEdges(rewired, OPERATORS, new Set(), [], marks);
    expect(edges.map(({ id, data }) => [id, data?.mark])).toEqual([
      ["readings>big.in", undefined],
      ["readings>file.in", "added"],
      ["big>file.in", "removed"],
    ]);
    expect(edges[2]?.ariaLabel).toBe("Stream from big to file, removed");
    const again = toEdges(rewired, OPERATORS, new Set(), edges, marks);
    expect(again[1]).toBe(edges[1]);
    // the draft again: no mark stays
    expect(toEdges(rewired, OPERATORS, new Set(), edges).map(({ data }) => data)).toEqual([
      undefined,
      undefined,
    ]);
  });
});

test("notes are told by their text, and their places do not count", () => {
  const note = { id: "n", kind: "note" as const, text: "Ask Ada", x: 0, y: 0, width: 100, height: 100 };
  const noted = (...notes: (typeof note)[]) => ({ ...DOCUMENT, spec: { ...DOCUMENT.spec, notes } });
  const told = (before: typeof DOCUMENT, after: typeof DOCUMENT) =>
    difference(before, after, operators).pipeline;
  expect(told(DOCUMENT, noted(note))).toEqual([{ what: "Note", from: null, to: "Ask Ada" }]);
  expect(told(noted(note), noted({ ...note, text: "" }))).toEqual([
    { what: "Note", from: "Ask Ada", to: "empty" },
  ]);
  expect(told(noted(note), noted({ ...note, x: 80 }))).toEqual([]);
});
