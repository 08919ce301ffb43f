import { describe, expect, test } from "vitest";
import { blank, fieldsOf, kindOf, faultsAt, unwrap, variantOf, wantsColumn } from "../form/schema";

const ROOT = {
  type: "object",
  required: ["size", "aggregates"],
  $defs: {
    Aggregate: {
      type: "object",
      title: "Aggregate",
      required: ["function", "column"],
      properties: {
        function: { $ref: "#/$defs/Function" },
        column: { type: "string", title: "Column" },
        alias: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
      },
    },
    Function: { type: "string", enum: ["mean", "sum"] },
  },
  properties: {
    size: { type: "integer", title: "Size", minimum: 1, description: "How many." },
    key: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
    aggregates: { type: "array", items: { $ref: "#/$defs/Aggregate" }, minItems: 1 },
    path: { type: "string", format: "file" },
    rename: { type: "object", additionalProperties: { type: "string" } },
    pace: { anyOf: [{ type: "number" }, { const: "recorded", type: "string" }] },
  },
};

describe("reading a schema", () => {
  test("every property gets the control that fits it", () => {
    const kinds = Object.fromEntries(fieldsOf(ROOT, ROOT, "params").map((field) => [field.name, field.kind]));
    expect(kinds).toEqual({
      size: "integer",
      key: "string",
      aggregates: "list",
      path: "file",
      rename: "map",
      pace: "union",
    });
  });

  test("paths are those of the server's faults", () => {
    expect(fieldsOf(ROOT, ROOT, "params")[0]?.path).toBe("params.size");
  });

  test("optional means nullable, and names keep sentence case", () => {
    const key = fieldsOf(ROOT, ROOT, "params")[1]!;
    expect([key.nullable, key.required, key.title]).toEqual([true, false, "Key"]);
    expect(wantsColumn(key)).toBe(true);
  });

  test("a reference is followed", () => {
    const { schema } = unwrap(ROOT.properties.aggregates.items, ROOT);
    expect(kindOf(schema)).toBe("object");
    expect(fieldsOf(schema, ROOT, "params.aggregates[0]")[0]?.kind).toBe("enum");
  });

  test("a new list item has what is required", () => {
    expect(blank(ROOT.properties.aggregates.items, ROOT)).toEqual({ function: "mean", column: "" });
  });

  test("a union's variant is told from the value", () => {
    const { schema } = unwrap(ROOT.properties.pace, ROOT);
    expect(variantOf(3, schema.anyOf)).toBe(0);
    expect(variantOf("recorded", schema.anyOf)).toBe(1);
  });
});

test("a fault shows once: at the deepest field that is drawn", () => {
  const faults = [{ local: "params.aggregates[0].column", message: "unknown" }];
  expect(faultsAt("params.aggregates", "list", faults)).toEqual([]);
  expect(faultsAt("params.aggregates[0].column", "string", faults)).toMatchObject([{ message: "unknown" }]);
});
