import { expect, test } from "vitest";
import type { DeadLetters, LetterOrder, PeekRecord } from "../../shared/types";
import { filePath, letterOf, lettersPath, lettersWords, mendPath, orderWords } from "../live/letters-words";

const record = (value: unknown): PeekRecord => ({ partition: 0, offset: 7, at: null, key: null, value });

const letters = (change: Partial<DeadLetters> = {}): DeadLetters => ({
  records: [],
  groups: [{ reason: "not a number", count: 3, offsets: [1, 2, 7], newest: record({}) }],
  groups_left_out: 0,
  looked: 3,
  more: false,
  replay: { allowed: true, reason: null, note: null },
  orders: [],
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

const order = (change: Partial<LetterOrder> = {}): LetterOrder => ({
  id: "o",
  did: "replay",
  reason: "",
  letters: 5,
  mended: false,
  status: "done",
  message: "",
  taken: 5,
  before: 0,
  stayed: [],
  stayed_count: 0,
  may_be_put_back: false,
  at: "2024-05-01T12:00:00Z",
  by: "ada",
  ...change,
});

test("an order says what became of its rows", () => {
  expect(mendPath("p 1", "a", "x&y", "")).toBe("/pipelines/p%201/elements/a/dead-letters/rows?reason=x%26y");
  expect(orderWords(order({ status: "pending", taken: 0 }))).toBe("Under way.");
  expect(orderWords(order({ taken: 3, before: 1, stayed_count: 1 }))).toBe(
    "3 rows came back. 1 had been dropped or replayed before. 1 stayed dead letters.",
  );
  expect(orderWords({ ...order(), read: 5, again: 2 })).toBe(
    "5 rows came back. 5 of them read. 2 rows became dead letters again.",
  );
  expect(orderWords(order({ did: "drop", taken: 1 }))).toBe("1 row dropped.");
});

test("a letter shows its row and its place, or itself", () => {
  const letter = record({ raw: "x,y", input: "in.out partition 0 offset 3" });
  expect(letterOf(letter)).toEqual({ raw: "x,y", place: "in.out partition 0 offset 3" });
  expect(letterOf(record("broken"))).toEqual({ raw: "broken", place: null });
});
