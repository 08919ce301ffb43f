import { expect, test } from "vitest";
import { typeWords } from "../column-types";
import { exact, moment, sentence, timeOfDay } from "../format";
import { nameIn } from "../live-reducer";
import { sparkPaths } from "../points";
import { optionWords, stepWords } from "../words";
import type { Step } from "../types";
import { element } from "./fixtures";

test("types and options are words", () => {
  expect(["integer", "number", "string", "timestamp"].map(typeWords)).toEqual([
    "whole number",
    "number",
    "text",
    "time",
  ]);
  expect(["avg", "relative_variation", "string", "line", ">"].map(optionWords)).toEqual([
    "Average",
    "Relative variation, %",
    "Text",
    "Line",
    "Above (>)",
  ]);
  expect(optionWords("%d.%m.%Y")).toBe("%d.%m.%Y");
});

test("the steps of a deployment are words, those of an upgrade are what its elements are called", () => {
  const name = (id: string) => ({ power: "Power of machines" })[id] ?? id;
  const step = (name: string, more: Partial<Step> = {}): Step => ({
    name,
    state: "pending",
    at: null,
    ...more,
  });
  expect(stepWords(step("topics"), name)).toBe("Create the streams");
  expect(stepWords(step("power"), name)).toBe("Power of machines");
  expect(stepWords(step("power", { change: "changed", title: "Power" }), name)).toBe("Power");
  expect(stepWords(step("run", { change: "added", title: "Long run" }), name)).toBe("Add Long run");
  expect(stepWords(step("alarm", { change: "removed" }), name)).toBe("End alarm");
  expect(stepWords(step("both", { change: "added", regrouped: true }), name)).toBe("Continue with both");
});

test("an element and a group have their titles, what is not known its id", () => {
  const elements = { p: [element({ id: "a", title: "Readings", group: "g", group_title: "Edge part" })] };
  expect(nameIn(elements, "p", "a")).toBe("Readings");
  expect(nameIn(elements, "p", "g")).toBe("Edge part");
  expect(nameIn(elements, "p", "gone")).toBe("gone");
  expect(nameIn(elements, null, "a")).toBe("a");
});

test("a clause is shown as a sentence", () => {
  expect(sentence("has to be a number")).toBe("Has to be a number.");
  expect(sentence("Did you mean this?")).toBe("Did you mean this?");
  expect(sentence("messy.csv: it is being looked at; wait a moment")).toBe(
    "messy.csv: it is being looked at; wait a moment.",
  );
  expect(sentence("temp_1 is no column")).toBe("temp_1 is no column.");
  expect(sentence("too late.")).toBe("Too late.");
});

test("times have one format: a day clock of 24 h, with the date unless it is of today", () => {
  const at = new Date(2026, 10, 23, 22, 42, 31, 85).getTime();
  expect(exact(at)).toBe("23 Nov 2026, 22:42:31");
  expect(timeOfDay(at)).toBe("22:42:31.085");
  expect(moment(at, at + 1000)).toBe("22:42:31.085");
  expect(moment(at, at + 86_400_000)).toBe("23 Nov 2026, 22:42:31.085");
});

test("a small curve is broken where nothing is known, and reaches from the bottom to the top", () => {
  const pieces = sparkPaths([0, 10, null, 5, 10]);
  expect(pieces.map((piece) => piece.line)).toEqual(["M0.0,27.0 L25.0,2.0", "M75.0,14.5 L100.0,2.0"]);
  expect(pieces[0]?.area).toBe("M0.0,28 L0.0,27.0 L25.0,2.0 L25.0,28 Z");
  expect(sparkPaths([null, 3, null])).toEqual([]);
  expect(sparkPaths([2, 2], 1)[0]?.line).toBe("M0.0,2.0 L100.0,2.0");
});
