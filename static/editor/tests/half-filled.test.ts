import { expect, test } from "vitest";
import type { Condition } from "../form/condition";
import { halfFilled, keepHalf } from "../form/half-filled";
import { fieldsOf, isCondition } from "../form/schema";

const rows = (text: string): Condition => ({
  inner: "and",
  groups: [[{ column: "value", comparison: ">", values: [{ kind: "number", text, blank: true }] }]],
});

test("rows that lack something are kept by element and parameter, beside their expression", () => {
  keepHalf("high", "params.condition", "value > 1", rows(""));
  expect(halfFilled("high", "params.condition", "value > 1")).toEqual(rows(""));
  expect(halfFilled("low", "params.condition", "value > 1")).toBeNull();
  expect(halfFilled("high", "params.other", "value > 1")).toBeNull();
  expect(halfFilled("high", "params.condition", "value > 2")).toBeNull();
});

test("rows that lack nothing are not kept", () => {
  keepHalf("high", "params.condition", "value > 1", rows(""));
  keepHalf("high", "params.condition", "value > 1", rows("1"));
  expect(halfFilled("high", "params.condition", "value > 1")).toBeNull();
});

test("rows are offered where the schema says that an expression is true or false, whatever its name", () => {
  const text = { type: "string", format: "expression" };
  const root = { properties: { begins: { ...text, "x-result": "boolean" }, condition: text } };
  expect(fieldsOf(root, root, "params").map(isCondition)).toEqual([true, false]);
});
