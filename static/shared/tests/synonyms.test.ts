import { describe, expect, test } from "vitest";
import { matchScore, synonymsOf } from "../synonyms";

const AVERAGE = "Window aggregate: Average, minimum, maximum, ... of each window of time";
const ALERT = "Threshold alert: Emits an alert when a value is beyond a limit";

describe("what people look for", () => {
  test.each([
    ["mittelwert", AVERAGE],
    ["minute", AVERAGE],
    ["notify", ALERT],
    ["benachrichtigen", ALERT],
    ["vorlage", "Templates"],
    ["konto", "Your account"],
    ["löschen", "Delete the selection"],
  ])("%s leads to %s", (word, text) => {
    expect(synonymsOf(text)).toContain(word);
  });

  test("is no part of another word", () => {
    expect(synonymsOf("Summary")).not.toContain("anzahl");
    expect(synonymsOf("Filter")).not.toContain("konto");
  });
});

test("what is called so comes first, then what is known by it, then what means the same", () => {
  const known = ["Average, minimum, maximum of each window of time"];
  const scores = ["window", "aggregate", "average", "mittelwert", "mittelw"].map((search) =>
    matchScore("Window aggregate", known, search),
  );
  expect(scores).toEqual([...scores].sort((a, b) => b - a));
  expect(new Set(scores).size).toBe(5);
  expect(matchScore("Generator", ["Makes test data"], "mittelwert")).toBe(0);
  expect(matchScore("Generator", [], "")).toBe(1);
});
