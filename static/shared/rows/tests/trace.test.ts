import { expect, test } from "vitest";
import type { TracedStep } from "../../types";
import { placeOf, rowAt, stepWords, tracePath } from "../trace-words";

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

test("a step says how many rows there are and which element made a row from them", () => {
  expect(stepWords(step())).toBe("1 row, from which Average made the rows above.");
  expect(stepWords(step({ count: 1300 }))).toBe(
    "1,300 rows, from which Average made the rows above. The newest 1 are shown.",
  );
  expect(stepWords(step({ count: 0, records: [] }))).toBe("None of its rows belongs here.");
  expect(stepWords(step({ kept: false }))).toBe("It runs as one with Average, so its rows are kept nowhere.");
});

test("a row is asked for by the place where it lies", () => {
  const place = placeOf("readings.out", { partition: 2, offset: 7, at: null, key: "a", value: {} });
  expect(tracePath("my plant", place)).toBe(
    "/pipelines/my%20plant/streams/readings.out/trace?partition=2&offset=7",
  );
});

test("a click in a chart means the nearest row, and of several at one time the one with the mark", () => {
  const row = (offset: number, s: number, alarm: boolean) => ({
    partition: 0,
    offset,
    at: `2026-11-28T12:00:0${s}Z`,
    key: null,
    value: { alarm },
  });
  const rows = [row(1, 1, false), row(2, 3, false), row(3, 3, true), row(4, 3, false)];
  const at = (s: number) => Date.parse("2026-11-28T12:00:00Z") + 1000 * s;
  expect(rowAt(rows, at(1.2), ["alarm"])?.offset).toBe(1);
  expect(rowAt(rows, at(3), ["alarm"])?.offset).toBe(3);
  expect(rowAt(rows, at(3), [])?.offset).toBe(2);
  expect(rowAt([], at(3), [])).toBeUndefined();
});
