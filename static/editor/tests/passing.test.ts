import { describe, expect, test } from "vitest";
import type { Fault, PipelineDocument } from "../../shared/types";
import { OPERATORS } from "../../shared/tests/documents";
import * as past from "../../shared/history";
import { hasColumns, wordsAt } from "../passing/checked";
import { passing, passingWords, type Checked } from "../passing/passing";
import { useEditor } from "../store";

const document: PipelineDocument = {
  apiVersion: "fogline/v1",
  kind: "Pipeline",
  metadata: { name: "demo" },
  spec: {
    elements: [
      { id: "numbers", type: "generator" },
      { id: "high", type: "filter", title: "High", inputs: { in: "numbers" } },
      { id: "later", type: "filter", inputs: { in: "high" } },
      { id: "alone", type: "filter" },
    ],
  },
};
const columns = {
  key: "machine",
  fields: [
    { name: "machine", type: "string" as const, unit: null },
    { name: "power", type: "number" as const, unit: "kW" },
  ],
};
const fault = (index: number, path: string, message: string, code: string): Fault =>
  ({
    element: document.spec?.elements?.[index]?.id,
    path: `spec.elements[${index}].${path}`,
    message,
    code,
  }) as Fault;
const checked = (...faults: Fault[]): Checked => ({
  document,
  operators: OPERATORS,
  schemas: { "numbers.out": columns },
  faults,
});
const into = (element: string) => ({ side: "in" as const, element, port: "in" });

describe("what passes at a port", () => {
  test("the columns of the stream, with type, unit and key", () => {
    expect(passingWords(passing(checked(), into("high")))).toBe(
      "Columns: machine (text, key), power (number, kW).",
    );
    expect(passing(checked(), { side: "out", element: "numbers", port: "out" }).schema).toBe(columns);
  });

  test("what its reader cannot take, but no other problem of the reader", () => {
    const wrong = fault(1, "params.condition", "there is no column watts", "schema");
    const other = fault(1, "node", "there is no node x", "unknown_node");
    expect(passing(checked(wrong, other), into("high")).wrong).toEqual(["There is no column watts."]);
  });

  test("behind a problem the columns are unknown, and the nearest problem says why", () => {
    const wrong = fault(1, "params.condition", "is missing", "missing");
    const { schema, why } = passing(checked(wrong), { side: "out", element: "later", port: "out" });
    expect(schema).toBeUndefined();
    expect(why).toEqual(["High: Is missing."]);
  });

  test("nothing, as long as nothing is connected", () => {
    const missing = fault(3, "inputs.in", "nothing is connected", "missing_input");
    expect(passingWords(passing(checked(missing), into("alone")))).toBe("Nothing is connected here yet.");
  });
});

describe("in Live", () => {
  const state = {
    ...useEditor.getState(),
    mode: "live" as const,
    operators: OPERATORS,
    // the draft reads from another element than the version that runs
    history: past.start({ ...document, spec: { elements: [{ id: "high", type: "filter" }] } }),
    deployed: document,
    schemas: {},
    running: { "numbers.out": columns },
  };

  test("the columns are those of the deployed version", () => {
    expect(hasColumns(state)).toBe(true);
    expect(wordsAt(state, into("high"))).toBe("Columns: machine (text, key), power (number, kW).");
    expect(wordsAt({ ...state, mode: "edit" }, into("high"))).toBe("Nothing is connected here yet.");
  });

  test("nothing is said while nobody knows what runs, or of an earlier version", () => {
    const unknown = { ...state, running: null };
    const earlier = { ...state, looked: { document, marks: {}, streams: [] } };
    for (const each of [unknown, earlier]) expect(wordsAt(each, into("high"))).toBe("");
  });
});
