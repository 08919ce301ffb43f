import { describe, expect, test } from "vitest";
import { judge, reaches } from "../connect";
import { DOCUMENT, OPERATORS } from "../../shared/tests/documents";
import { elementsOf } from "../../shared/document";

const out = (element: string) => ({ element, port: "out" });
const into = (element: string, port = "in") => ({ element, port });

describe("which ports may be joined", () => {
  test("a free or taken input accepts, and says what it replaces", () => {
    expect(judge(DOCUMENT, OPERATORS, out("readings"), into("file"))).toEqual({ ok: true, replaces: "big" });
  });

  test.each([
    ["itself", out("big"), into("big"), /own output/],
    ["a cycle", out("big"), into("readings"), /no input in/],
    ["an output that is none", { element: "file", port: "out" }, into("big"), /no output out/],
    ["an unknown port", out("readings"), into("file", "left"), /no input left/],
    ["an element that is gone", out("ghost"), into("file"), /gone/],
  ])("%s is refused with its reason", (_, from, to, reason) => {
    const verdict = judge(DOCUMENT, OPERATORS, from, to);
    expect(verdict.ok).toBe(false);
    expect(verdict.ok ? "" : verdict.reason).toMatch(reason);
  });

  test("a longer cycle is found", () => {
    const document = {
      ...DOCUMENT,
      spec: { elements: [...elementsOf(DOCUMENT), { id: "late", type: "filter", inputs: { in: "big" } }] },
    };
    const verdict = judge(document, OPERATORS, out("late"), into("big"));
    expect(verdict.ok ? "" : verdict.reason).toMatch(/cycle/);
  });

  test("a stream without the column that the target names is refused", () => {
    const schemas = { "readings.out": { fields: [{ name: "t", type: "number" as const }] } };
    const verdict = judge(DOCUMENT, OPERATORS, out("readings"), into("big"), schemas);
    expect(verdict.ok ? "" : verdict.reason).toMatch(/no column power/);
  });
});

test("reachability follows the streams only downstream", () => {
  expect(reaches(DOCUMENT, "readings", "file")).toBe(true);
  expect(reaches(DOCUMENT, "file", "readings")).toBe(false);
});
