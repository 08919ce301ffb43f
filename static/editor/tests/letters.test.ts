import { expect, test } from "vitest";
import type { DeadLetters, PeekRecord } from "../../shared/types";
import { filePath, letterOf, lettersPath, lettersWords } from "../live/letters-words";

const record = (value: unknown): PeekRecord => ({ partition: 0, offset: 7, at: null, key: null, value });

const letters = (change: Partial<DeadLetters> = {}): DeadLetters => ({
  records: [],
  groups: [{ reason: "not a number", count: 3, newest: record({}) }],
  groups_left_out: 0,
  looked: 3,
  more: false,
  ...change,
});

test("it asks for the letters with a text, and for the rows of a reason", () => {
  expect(lettersPath("p 1", "a", "")).toBe("/pipelines/p%201/streams/a/dead-letters?limit=20");
  expect(lettersPath("p", "a", "x&y", "not a number")).toContain("&text=x%26y&reason=not+a+number");
  expect(filePath("p", "a", "csv")).toBe("/api/v1/pipelines/p/streams/a/dead-letters/file?format=csv");
});

test("it says how many letters and reasons there are", () => {
  expect(lettersWords(letters())).toBe("1 reason in 3 letters.");
  expect(lettersWords(letters({ looked: 1000, more: true, groups_left_out: 2 }))).toBe(
    "3 reasons in the newest 1,000 letters; the 2 rarest are not listed.",
  );
  expect(lettersWords(letters({ groups: [] }))).toBe("None of 3 letters has this text.");
});

test("a letter shows its row and its place, or itself", () => {
  const letter = record({ raw: "x,y", input: "in.out partition 0 offset 3" });
  expect(letterOf(letter)).toEqual({ raw: "x,y", place: "in.out partition 0 offset 3" });
  expect(letterOf(record("broken"))).toEqual({ raw: "broken", place: null });
});
