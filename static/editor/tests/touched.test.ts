import { beforeEach, describe, expect, test } from "vitest";
import { DOCUMENT, OPERATORS } from "../../shared/tests/documents";
import type { Pipeline } from "../../shared/types";
import { open, useEditor } from "../store";
import { calmWords } from "../problems";
import { insist, isQuiet, touch } from "../touched";

const fault = (code: string, local: string) => ({ code, local });
const quiet = (code: string, local: string) =>
  isQuiet(useEditor.getState().touched, "big", fault(code, local));

beforeEach(() => {
  useEditor.setState({ touched: new Set() });
  open({ name: "demo", document: DOCUMENT } as Pipeline, [...OPERATORS.values()]);
});

describe("a field that is still to be filled in", () => {
  test("says so quietly until the user leaves it", () => {
    expect(quiet("missing", "params.column")).toBe(true);
    touch("big", "params.column");
    expect(quiet("missing", "params.column")).toBe(false);
    expect(quiet("missing", "params.other")).toBe(true);
  });

  test("is told loudly once a deployment is refused for it", () => {
    const path = "spec.elements[1].inputs.in";
    insist([{ element: null, path, message: "nothing is connected", code: "missing_input" }]);
    expect(quiet("missing_input", "inputs.in")).toBe(false);
  });
});

test("a wrong value is told at once", () => {
  expect(quiet("greater_than", "params.size_s")).toBe(false);
  expect(quiet("schema", "params.column")).toBe(false);
});

test("a file that is being imported is no problem of the user's", () => {
  touch("big", "params.file");
  expect(quiet("waiting", "params.file")).toBe(true);
  expect(calmWords([{ code: "waiting" }])).toBe("Waiting for an import");
  expect(calmWords([{ code: "waiting" }, { code: "schema" }])).toBeNull();
});

test("an empty canvas has no problem yet", () => {
  expect(calmWords([{ code: "empty" }])).toBe("Nothing is drawn yet");
  expect(calmWords([])).toBeNull();
});
