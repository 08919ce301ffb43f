import { expect, test } from "vitest";
import type { Operator } from "../../shared/types";
import { changeElement, moveElements, removeElements } from "../document";
import { counted, difference, inWords, withRemoved } from "../difference";
import { DOCUMENT, OPERATORS } from "./fixtures";

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
  expect(withRemoved(after, before).spec.elements?.map(({ id }) => id)).toEqual(["readings", "big", "file"]);
});

test("what runs as one, and what it is for, is of the pipeline", () => {
  const { groups: _, ...spec } = DOCUMENT.spec;
  const after = { ...DOCUMENT, metadata: { ...DOCUMENT.metadata, description: "For tests" }, spec };
  expect(difference(DOCUMENT, after, operators).pipeline).toEqual([
    { what: "Description", from: null, to: "For tests" },
    { what: "Runs as one", from: "readings, big", to: null },
  ]);
});
