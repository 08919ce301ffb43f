import { expect, test } from "vitest";
import { aggregateWords } from "../aggregate-words";

const average = { function: "avg", column: "power" };

test.each([
  ["window-aggregate", { size_s: 60, keys: ["Maschine"] }, "Average of power per minute for each Maschine"],
  ["window-aggregate", { size_s: 10 }, "Average of power of every 10 s"],
  ["window-aggregate", { size_s: 3600, slide_s: 60 }, "Average of power of the last 1 hour, every minute"],
  ["window-aggregate", { size_s: 28_800 }, "Average of power of every 8 hours"],
  ["window-aggregate", { size_s: 90, slide_s: 30 }, "Average of power of the last 90 s, every 30 s"],
  ["window-aggregate", { size_s: 60, slide_s: 60 }, "Average of power per minute"],
  ["keyed-aggregate", { keys: ["a", "b"] }, "Average of power so far for each a and b"],
  ["count-window-aggregate", { size: 5, key: "a" }, "Average of power of the last 5 rows for each a"],
])("%s %o is %s", (type, params, words) => {
  expect(aggregateWords(type, { ...params, aggregates: [average] })).toBe(words);
});

test("several are listed, and a count needs no column", () => {
  const aggregates = [average, { function: "count" }];
  expect(aggregateWords("window-aggregate", { size_s: 1, aggregates })).toBe(
    "Average of power and count per second",
  );
});

test("nothing is said of other elements, or before all is filled in", () => {
  expect(aggregateWords("filter", { condition: "v > 1" })).toBeNull();
  expect(aggregateWords("window-aggregate", { size_s: 60, aggregates: [] })).toBeNull();
  expect(aggregateWords("window-aggregate", { aggregates: [average] })).toBeNull();
  expect(aggregateWords("window-aggregate", { size_s: 1, aggregates: [{ function: "avg" }] })).toBeNull();
});
