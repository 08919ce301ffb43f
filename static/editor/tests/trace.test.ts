import { expect, test } from "vitest";
import type { TracedStep } from "../../shared/types";
import { placeOf, stepWords, tracePath } from "../live/trace-words";

const step = (change: Partial<TracedStep> = {}): TracedStep => ({
  element: "average",
  title: "Average",
  port: "in",
  stream: "readings.out",
  source_title: "Readings",
  columns: [],
  records: [{ partition: 0, offset: 7, at: null, key: null, value: {} }],
  count: 1,
  kept: true,
  notes: [],
  ...change,
});

test("a step says from how many rows of which element a row was made", () => {
  expect(stepWords(step())).toBe("From 1 row of Readings.");
  expect(stepWords(step({ count: 300 }))).toBe("From 300 rows of Readings. The newest 1 are shown.");
  expect(stepWords(step({ count: 0, records: [] }))).toBe("No row of Readings was found.");
  expect(stepWords(step({ kept: false }))).toBe("From rows of Readings, which runs as one with it.");
});

test("a row is asked for by the place where it lies", () => {
  const place = placeOf("readings.out", { partition: 2, offset: 7, at: null, key: "a", value: {} });
  expect(tracePath("my plant", place)).toBe(
    "/pipelines/my%20plant/streams/readings.out/trace?partition=2&offset=7",
  );
});
