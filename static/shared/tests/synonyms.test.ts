import { describe, expect, test } from "vitest";
import { synonymsOf } from "../synonyms";

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
