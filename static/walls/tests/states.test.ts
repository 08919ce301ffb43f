import { expect, test } from "vitest";
import { statesOf } from "../small-tiles";

test("elements are counted by their states, the most frequent first", () => {
  expect(statesOf(["failed", "running", "running", undefined])).toEqual([
    ["running", 2],
    ["failed", 1],
  ]);
  expect(statesOf([])).toEqual([]);
});
