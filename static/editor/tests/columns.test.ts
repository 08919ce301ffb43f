import { describe, expect, test } from "vitest";
import type { Operator, PipelineDocument, SchemaField, StreamSchema } from "../../shared/types";
import { columnUses, mendsOf, misfits } from "../columns";
import { judge } from "../connect";
import { elementsOf, findElement } from "../../shared/document";
import { OPERATORS } from "../../shared/tests/documents";

const NUMBERS = ["integer", "number"];
const numeric = { type: "string", format: "column", "x-column": { types: NUMBERS } };
const filter = OPERATORS.get("filter") as Operator;
const CHART: Operator = {
  ...filter,
  type: "live-chart",
  title: "Live chart",
  outputs: [],
  params_schema: {
    required: ["columns"],
    properties: {
      columns: { type: "array", minItems: 1, items: numeric },
      by: { type: "string", format: "column" },
    },
  },
};
const AVERAGE: Operator = {
  ...filter,
  type: "average",
  params_schema: {
    required: ["aggregates"],
    $defs: {
      Aggregate: {
        type: "object",
        required: ["function"],
        properties: {
          function: { type: "string" },
          column: {
            anyOf: [{ type: "string", format: "column" }, { type: "null" }],
            "x-column": { types: NUMBERS, unless: { function: ["min", "count"] } },
          },
        },
      },
    },
    properties: { aggregates: { type: "array", minItems: 1, items: { $ref: "#/$defs/Aggregate" } } },
  },
};
const DERIVE: Operator = { ...filter, type: "derive", title: "Derive", params_schema: { properties: {} } };
const ALL = new Map([...OPERATORS, ["live-chart", CHART], ["average", AVERAGE], ["derive", DERIVE]]);

const stream = (fields: Record<string, SchemaField["type"]>): StreamSchema => ({
  fields: Object.entries(fields).map(([name, type]) => ({ name, type })),
});
const MIXED = stream({ machine: "string", v1: "number", v2: "integer" });

const drawn = (
  type: string,
  params: Record<string, unknown>,
  inputs?: Record<string, string>,
): PipelineDocument => ({
  apiVersion: "fogline/v1",
  kind: "Pipeline",
  metadata: { name: "demo" },
  spec: {
    elements: [
      { id: "readings", type: "csv-replay", ui: { x: 0, y: 0 } },
      { id: "reader", type, params, inputs, ui: { x: 640, y: 160 } },
    ],
  },
});
const FROM = { element: "readings", port: "out" };
const TO = { element: "reader", port: "in" };
const verdict = (document: PipelineDocument, schema: StreamSchema) => {
  const found = judge(document, ALL, FROM, TO, { "readings.out": schema });
  return found.ok ? { reason: "", mends: [] } : found;
};

describe("the columns that parameters name", () => {
  test("each with its path and the types that it may have", () => {
    expect(columnUses(CHART.params_schema, { columns: ["v1", "v2"], by: "machine" })).toEqual([
      { path: "params.columns[0]", column: "v1", types: NUMBERS },
      { path: "params.columns[1]", column: "v2", types: NUMBERS },
      { path: "params.by", column: "machine", types: null },
    ]);
  });

  test("one that still has to be chosen counts, an optional one does not", () => {
    expect(columnUses(CHART.params_schema, {})).toEqual([
      { path: "params.columns[0]", column: "", types: NUMBERS },
    ]);
    expect(columnUses(AVERAGE.params_schema, {})).toEqual([]);
  });

  test("whether a number is needed may depend on another parameter", () => {
    const aggregates = ["avg", "min", "count"].map((name) => ({ function: name, column: "machine" }));
    const uses = columnUses(AVERAGE.params_schema, { aggregates });
    expect(uses.map((use) => use.types)).toEqual([NUMBERS, null, null]);
    expect(misfits(AVERAGE, { aggregates }, MIXED).map((misfit) => misfit.path)).toEqual([
      "params.aggregates[0].column",
    ]);
  });
});

describe("a text column where a number is needed", () => {
  test("is refused in words, and another column of the stream mends it", () => {
    const document = drawn("live-chart", { columns: ["machine"] });
    const { reason, mends } = verdict(document, MIXED);
    expect(reason).toBe("machine is text, but that parameter needs a number.");
    expect(mends.map((mend) => mend.title)).toEqual([
      "Use v1 instead",
      "Use v2 instead",
      "Convert machine to a number",
    ]);
    const mended = findElement(mends[1]!.apply(document), "reader");
    expect(mended?.params).toEqual({ columns: ["v2"] });
    expect(mended?.inputs).toEqual({ in: "readings" });
  });

  test("a conversion goes between, under the same name, and both streams are drawn", () => {
    const document = drawn("average", { aggregates: [{ function: "avg", column: "machine" }] });
    const { mends } = verdict(document, MIXED);
    const mended = mends.at(-1)!.apply(document);
    expect(elementsOf(mended).map((element) => [element.id, element.inputs])).toEqual([
      ["readings", undefined],
      ["reader", { in: "derive" }],
      ["derive", { in: "readings" }],
    ]);
    const derive = findElement(mended, "derive");
    expect(derive?.params).toEqual({
      columns: [{ name: "machine", expression: "cast(`machine` as number)" }],
    });
    expect(derive?.ui).toEqual({ x: 320, y: 80 });
    expect(elementsOf(document)).toHaveLength(2);
  });

  test("a stream without any number is refused before a column is chosen", () => {
    const document = drawn("live-chart", {});
    const { reason, mends } = verdict(document, stream({ machine: "string", on: "boolean" }));
    expect(reason).toBe("It needs a number, and the stream has only machine (text) and on (true or false).");
    expect(mends.map((mend) => mend.title)).toEqual([
      "Convert machine to a number",
      "Convert on to a number",
    ]);
    const mended = mends[0]!.apply(document);
    expect(findElement(mended, "reader")?.params).toEqual({ columns: ["machine"] });
  });

  test("what fits is joined, and so is what is not known yet", () => {
    const document = drawn("live-chart", { columns: ["v2"], by: "machine" });
    expect(judge(document, ALL, FROM, TO, { "readings.out": MIXED }).ok).toBe(true);
    expect(judge(drawn("live-chart", {}), ALL, FROM, TO, { "readings.out": MIXED }).ok).toBe(true);
    expect(judge(drawn("live-chart", { columns: ["machine"] }), ALL, FROM, TO, {}).ok).toBe(true);
  });

  test("one that is connected already can be mended at its field", () => {
    const document = drawn("live-chart", { columns: ["v1", "machine"] }, { in: "readings" });
    const found = mendsOf(document, ALL, { "readings.out": MIXED }, "reader");
    expect(Object.keys(found)).toEqual(["params.columns[1]"]);
    const mended = findElement(found["params.columns[1]"]![0]!.apply(document), "reader");
    expect(mended?.params).toEqual({ columns: ["v1", "v1"] });
  });

  test("what the server says would do instead is offered too, expressions among it", () => {
    const document = drawn("live-chart", { columns: ["v1", "machine"], note: "x > 1" }, { in: "readings" });
    const faults = [
      { local: "params.note", instead: [{ column: "v1", value: "v1 > 1" }] },
      { local: "params.columns[1]", instead: [{ column: "v1", value: "v1" }] },
    ];
    const found = mendsOf(document, ALL, { "readings.out": MIXED }, "reader", faults);
    expect(found["params.note"]!.map((mend) => mend.title)).toEqual(["Use v1 instead"]);
    const mended = findElement(found["params.note"]![0]!.apply(document), "reader");
    expect(mended?.params).toEqual({ columns: ["v1", "machine"], note: "v1 > 1" });
    expect(found["params.columns[1]"]!.map((mend) => mend.title)).toEqual([
      "Use v1 instead",
      "Use v2 instead",
      "Convert machine to a number",
    ]);
  });

  test("without an element that converts, none is offered", () => {
    const without = new Map([...ALL].filter(([type]) => type !== "derive"));
    const found = judge(drawn("live-chart", {}), without, FROM, TO, {
      "readings.out": stream({ a: "string" }),
    });
    expect(found.ok ? null : found.mends).toEqual([]);
  });
});
