import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { compact, keptPath, keysSay, keyText, noneSays, unfolded } from "../live/kept";
import { KeptTable } from "../live/state";
import type { KeptKey, KeptPage } from "../../shared/types";

const entry = (change: Partial<KeptKey> = {}): KeptKey => ({
  key: "machine 3",
  key_cut: false,
  state: { sum: 12, last: [1, 2] },
  state_cut: false,
  timers: [],
  ...change,
});
const page = (change: Partial<KeptPage> = {}): KeptPage => ({
  at: "2026-11-26T20:00:00+00:00",
  keys: 0,
  entries: [],
  next: null,
  looked: null,
  ...change,
});

test("a page is asked for with what is searched and where the one before has ended, whatever is in a key", () => {
  expect(keptPath("p", "a b", "", null)).toBe("/pipelines/p/elements/a%20b/state?limit=20");
  expect(keptPath("p", "e", "ä&b", "k\0")).toBe(
    "/pipelines/p/elements/e/state?limit=20&key=%C3%A4%26b&after=k%00",
  );
  expect(keptPath("p", "e", "", "")).toContain("after=");
});

test("a state is one line, and folds out where that says more", () => {
  expect(compact(entry())).toBe('{"sum":12,"last":[1,2]}');
  expect(unfolded(entry())).toContain('\n  "sum": 12,');
  expect(unfolded(entry({ state: {} }))).toBeNull();
  expect(unfolded(entry({ state: 7 }))).toBeNull();
});

test("what was cut says so", () => {
  const cut = entry({ key: "abc", key_cut: true, state: '{"sum":1', state_cut: true });
  expect(keyText(cut)).toBe("abc…");
  expect(compact(cut)).toBe('{"sum":1…');
  expect(unfolded(cut)).toBe('{"sum":1…');
  expect(renderToStaticMarkup(createElement(KeptTable, { entries: [cut] }))).toContain("Only the beginning");
});

test("rows without a key have one that can be read", () => {
  expect(keyText(entry({ key: "" }))).toBe("(no key)");
});

test("timers are times, and nothing of a key or state is taken for markup", () => {
  const timers = ["2020-01-02T03:04:05+00:00", null];
  const drawn = renderToStaticMarkup(
    createElement(KeptTable, { entries: [entry({ key: "<b>", state: "<i>", timers })] }),
  );
  expect(drawn).toContain("2 Jan 2020");
  expect(drawn).toContain("a time in the far future");
  expect(drawn).not.toMatch(/<b>|<i>/);
});

test("how many keys there are, and why none is shown", () => {
  expect(keysSay(page({ keys: 1 }))).toBe("1 key");
  expect(keysSay(page({ keys: 12_000 }))).toBe("12,000 keys");
  expect(noneSays(page(), "")).toMatch(/^The state is empty/);
  expect(noneSays(page({ keys: 5 }), "x")).toBe("No key matches “x”.");
  expect(noneSays(page({ keys: 9000, looked: 5000, next: "k" }), "x")).toBe(
    "None of the 5,000 keys that were searched matches “x”.",
  );
});
