import { expect, test } from "vitest";
import type { DeadLetters, LetterOrder, PeekRecord } from "../../shared/types";
import { allOf } from "../live/letter-actions";
import {
  countPath,
  filePath,
  letterOf,
  lettersPath,
  lettersWords,
  mendPath,
  orderWords,
  rawRowOf,
  spanWords,
} from "../live/letters-words";
import { tabOf } from "../live/shown-tab";

const record = (value: unknown): PeekRecord => ({ partition: 0, offset: 7, at: null, key: null, value });

const letters = (change: Partial<DeadLetters> = {}): DeadLetters => ({
  records: [],
  groups: [{ reason: "not a number", count: 3, newest: record({}) }],
  groups_left_out: 0,
  looked: 3,
  more: false,
  topics: {},
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
  text: "",
  letters: 5,
  mended: false,
  status: "done",
  cancel_requested: false,
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

test("an order about many rows says how far it is, and what stays when it ends early", () => {
  const many = order({ status: "pending", letters: 40000, taken: 12000 });
  expect(orderWords(many)).toBe("Under way: 12,000 of 40,000 rows.");
  expect(orderWords({ ...many, cancel_requested: true })).toMatch(/rows. It is being cancelled.$/);
  expect(orderWords({ ...many, status: "cancelled" })).toBe(
    "It was cancelled. 12,000 rows came back. The others stay as they are.",
  );
  expect(orderWords({ ...many, status: "failed", taken: 0, message: "No way." })).toBe(
    "It failed: No way. The dead letters stay as they are.",
  );
});

test("before an order it says which rows are no part of it", () => {
  const found = { letters: 40000, first: 0, until: 50000, more: false };
  const asked = { reason: "late", text: "" };
  expect(countPath("p 1", "a", "late", "x&y")).toBe(
    "/pipelines/p%201/elements/a/dead-letters/count?reason=late&text=x%26y",
  );
  expect(allOf(asked, found)).toEqual({ reason: "late", span: { first: 0, until: 50000, text: "" } });
  expect(spanWords(asked, found)).toBe("Letters that come from now on are not part of it. Reason: late.");
  expect(spanWords({ ...asked, text: "m1" }, { ...found, more: true })).toMatch(
    /older letters, which were not looked at.*Only rows with the text "m1"/,
  );
});

test("a letter shows its row, its time, its key and its place, or itself", () => {
  const said = { raw: "x,y", input: "in.out partition 0 offset 3", key: "m1", time_ms: 1000 };
  const letter = record(said);
  const place = "partition 0, offset 3";
  expect(letterOf(letter)).toEqual({ raw: "x,y", stream: "in.out", place, key: "m1", timeMs: 1000 });
  const unknown = { stream: null, place: null, key: null, timeMs: null };
  expect(letterOf(record("broken"))).toEqual({ raw: "broken", ...unknown });
  const later = { ...letter, at: "1970-01-01T00:01:00Z" };
  const topics = { "other.out": "fl.d.other.out", "in.out": "fl.d.in.out" };
  const row = rawRowOf(later, topics);
  expect(row).toMatchObject({ id: "0/7", at: "1970-01-01T00:00:01.000Z", key: "m1", raw: "x,y" });
  expect(row.lies).toMatch(
    /^Key m1, topic fl.d.in.out, partition 0, offset 3, dead letter since .*1970.*\.$/,
  );
  // nobody waits for a letter: the time of its arrival says no more
  expect(rawRowOf({ ...letter, at: "1970-01-01T00:00:01.4Z" }, {}).lies).not.toContain("dead letter since");
  expect(rawRowOf(record("broken"), {})).toMatchObject({ at: null, raw: "broken", lies: "" });
});

test("the mark of a card opens the dead letters of its element, and no other element's tab", () => {
  const tabs = [{ id: "charts" }, { id: "dead" }];
  expect(tabOf({ element: "a", tab: "dead" }, "a", tabs)).toBe("dead");
  expect(tabOf({ element: "a", tab: "dead" }, "b", tabs)).toBe("charts");
  expect(tabOf({ element: "a", tab: "gone" }, "a", tabs)).toBe("charts");
});
