import { describe, expect, test } from "vitest";
import type { Operator, PipelineDocument, SchemaField, StreamSchema } from "../../shared/types";
import { OPERATORS } from "../../shared/tests/documents";
import { columnStories, found, stepWords } from "../outline/story";

const filter = OPERATORS.get("filter") as Operator;
const COLUMN = { type: "string", format: "column" };
const EXPRESSION = { type: "string", format: "expression" };
const TEXT = { type: "string" };
const list = (properties: Record<string, unknown>) => ({
  type: "array",
  items: { type: "object", properties },
});
const operator = (type: string, properties: Record<string, unknown>, outputs = filter.outputs): Operator => ({
  ...filter,
  type,
  outputs,
  params_schema: { properties },
});
const ALL = new Map<string, Operator>(
  [
    operator("source", {}),
    operator("select", { columns: list({ column: COLUMN, as: TEXT }) }),
    operator("derive", { columns: list({ name: TEXT, expression: EXPRESSION, unit: TEXT }) }),
    operator("average", { aggregates: list({ function: TEXT, column: COLUMN, as: TEXT }) }),
    operator("filter", { condition: EXPRESSION }),
    operator("join", { right_prefix: TEXT }),
    operator("sink", {}, []),
  ].map((each) => [each.type, each]),
);

const stream = (...names: string[]): StreamSchema => ({
  fields: names.map((name): SchemaField => ({ name, type: "number", unit: null })),
});
type Element = [id: string, type: string, params: Record<string, unknown>, inputs: string[]];
const drawn = (...elements: Element[]): PipelineDocument => ({
  apiVersion: "fogline/v1",
  kind: "Pipeline",
  metadata: { name: "demo" },
  spec: {
    elements: elements.map(([id, type, params, inputs]) => ({
      id,
      type,
      params,
      inputs: Object.fromEntries(inputs.map((input, index) => [`in${index}`, input])),
    })),
  },
});

/** "element: words" of each step of a column. */
function told(document: PipelineDocument, schemas: Record<string, StreamSchema>, name: string): string[] {
  const story = columnStories(document, ALL, schemas).find((each) => each.name === name);
  return (story?.steps ?? []).map((step) => `${step.element}: ${stepWords(step)}`);
}

describe("the story of a column", () => {
  test("it is made, passed on and arrives, also if readers are written first", () => {
    const document = drawn(
      ["out", "sink", {}, ["high"]],
      ["high", "filter", { condition: "value > 3 and state = 'on'" }, ["s"]],
      ["s", "source", {}, []],
    );
    const schemas = { "s.out": stream("value", "state", "x"), "high.out": stream("value", "state", "x") };
    expect(told(document, schemas, "value")).toEqual(["s: made", "high: passed on, used", "out: arrives"]);
    expect(told(document, schemas, "x")).toEqual(["s: made", "high: passed on", "out: arrives"]);
  });

  test("a column that gets another name is renamed there, and its old name ends there", () => {
    const document = drawn(
      ["s", "source", {}, []],
      ["names", "select", { columns: [{ column: "value", as: "power" }] }, ["s"]],
    );
    const schemas = { "s.out": stream("value", "other"), "names.out": stream("power") };
    expect(told(document, schemas, "power")).toEqual(["names: renamed from value"]);
    expect(told(document, schemas, "value")).toEqual(["s: made", "names: not passed on, used"]);
    expect(told(document, schemas, "other")).toEqual(["s: made", "names: not passed on"]);
  });

  test("an aggregate and an expression make a column from those that they name", () => {
    const document = drawn(
      ["s", "source", {}, []],
      ["d", "derive", { columns: [{ name: "sum", expression: "abs(a) + `b` * 2" }] }, ["s"]],
      ["w", "average", { aggregates: [{ function: "avg", column: "sum", as: "mean" }] }, ["d"]],
    );
    const schemas = {
      "s.out": stream("a", "b"),
      "d.out": stream("a", "b", "sum"),
      "w.out": stream("mean", "window_start"),
    };
    expect(told(document, schemas, "sum")).toEqual(["d: made from a, b", "w: not passed on, used"]);
    expect(told(document, schemas, "mean")).toEqual(["w: made from sum"]);
    expect(told(document, schemas, "window_start")).toEqual(["w: made"]);
  });

  test("a column that an expression replaces is changed", () => {
    const document = drawn(
      ["s", "source", {}, []],
      ["d", "derive", { columns: [{ name: "a", expression: "a * 2" }] }, ["s"]],
    );
    const schemas = { "s.out": stream("a"), "d.out": stream("a") };
    expect(told(document, schemas, "a")).toEqual(["s: made", "d: changed, used"]);
  });

  test("a join renames what both sides have", () => {
    const document = drawn(
      ["l", "source", {}, []],
      ["r", "source", {}, []],
      ["j", "join", { right_prefix: "right_" }, ["l", "r"]],
    );
    const schemas = { "l.out": stream("a"), "r.out": stream("a"), "j.out": stream("a", "right_a") };
    expect(told(document, schemas, "right_a")).toEqual(["j: renamed from a"]);
  });

  test("an element whose columns are not known claims nothing", () => {
    const document = drawn(["s", "source", {}, []], ["high", "filter", { condition: "value >" }, ["s"]]);
    expect(told(document, { "s.out": stream("value") }, "value")).toEqual(["s: made"]);
  });

  test("elements in a circle end it", () => {
    const document = drawn(["a", "filter", {}, ["b"]], ["b", "filter", {}, ["a"]]);
    expect(columnStories(document, ALL, {})).toEqual([]);
  });
});

test("a search finds names in any case", () => {
  const document = drawn(["s", "source", {}, []]);
  const stories = columnStories(document, ALL, { "s.out": stream("Power_kW", "speed") });
  expect(found(stories, " power").map(({ name }) => name)).toEqual(["Power_kW"]);
  expect(found(stories, "")).toHaveLength(2);
});
