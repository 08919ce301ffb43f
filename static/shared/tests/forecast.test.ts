import { describe, expect, test } from "vitest";
import {
  basisWords,
  expectation,
  expectRows,
  inSentences,
  leavingSentence,
  roughly,
  type Leaving,
} from "../forecast";
import type { Expected, Forecast, NodeForecast } from "../types";

const figure = (ms: number, basis: Expected["basis"] = "group", n = 3): Expected => ({
  ms,
  least_ms: ms,
  most_ms: ms,
  basis,
  n,
});
const there = (change: Partial<NodeForecast> = {}): NodeForecast => ({
  start: "warm",
  bytes: 79_700,
  had: false,
  standby: { ready: figure(8000), pause: figure(180) },
  "stop-and-copy": { ready: null, pause: figure(12_000, "typical", 0) },
  restore: { "hot-standby": null, checkpoint: figure(3_100, "node", 2), rewind: figure(900, "typical", 0) },
  cost: null,
  warnings: [],
  ...change,
});
const forecast = (change: Partial<NodeForecast> = {}): Forecast => ({ nodes: { "edge-b": there(change) } });

test("a time to come is no exact figure", () => {
  expect([20, 180, 8400, 46_000, 300_000].map(roughly)).toEqual([
    "less than 0.1 s",
    "about 0.2 s",
    "about 8.4 s",
    "about 46 s",
    "about 5 min",
  ]);
});

test("what it is known from is said, and that a typical value is one", () => {
  const words = (basis: Expected["basis"], n: number) => basisWords(figure(1, basis, n), "power", "edge-b");
  expect(words("group", 1)).toBe("From the last time that power moved.");
  expect(words("group", 3)).toBe("From the last 3 moves of power.");
  expect(words("node", 1)).toBe("From the last move to edge-b.");
  expect(words("pipeline", 2)).toBe("From the last 2 moves in this pipeline.");
  expect(words("typical", 0)).toContain("typical value");
});

test("how far the moves are apart is said, unless all took the same", () => {
  const expected = { ...figure(21, "group", 5), least_ms: 18, most_ms: 1_320 };
  expect(basisWords(expected, "power", "edge-b")).toBe(
    "From the last 5 moves of power, which took 18 ms to 1.32 s.",
  );
});

describe("what to expect", () => {
  test("of a move with a standby: how long it gets ready, and the pause", () => {
    const expected = expectation(forecast(), "edge-b", "standby", "power");
    expect(expected).toMatchObject({ ready: "about 8.0 s", pause: "about 0.2 s" });
    expect(expected?.readyNote).toContain(
      "edge-b fetches the state and starts a query; power keeps running meanwhile",
    );
    expect(expected && inSentences(expected)).toBe(
      "Getting ready takes about 8.0 s; then output pauses for about 0.2 s. From the last 3 moves of power.",
    );
  });

  test("of a node that runs nothing: that its first query takes longer", () => {
    const cold = forecast({ start: "cold" });
    for (const way of ["standby", "stop-and-copy"] as const) {
      const { readyNote, pauseNote } = expectation(cold, "edge-b", way, "power") ?? {};
      expect(`${readyNote} ${pauseNote}`).toContain("the first query of a node takes much longer");
    }
  });

  test("of a stop and copy: all of it is the pause", () => {
    const expected = expectation(forecast(), "edge-b", "stop-and-copy", "power");
    expect(expected).toMatchObject({ ready: null, pause: "about 12 s" });
    expect(expected && inSentences(expected)).toMatch(/^Output pauses for about 12 s\. A typical/);
  });

  test("of a node that nothing is known of: nothing", () => {
    expect(expectation(forecast(), "edge-c", "standby", "power")).toBeNull();
    expect(expectation(null, "edge-b", "standby", "power")).toBeNull();
    expect(expectation(forecast(), null, "standby", "power")).toBeNull();
  });
});

describe("what to expect of a restoration", () => {
  const rows = (way: "hot-standby" | "checkpoint" | "rewind", change: Partial<NodeForecast> = {}) =>
    expectRows(forecast(change), "edge-b", way, "power");

  test("how long it takes until it runs, and what that is known from", () => {
    expect(rows("checkpoint")).toEqual([
      {
        title: "Until it runs on edge-b",
        value: "about 3.1 s",
        note: "edge-b fetches the checkpoint, starts a query, and reads the rows since then again. From the last 2 restorations from a checkpoint on edge-b.",
      },
    ]);
    expect(rows("rewind")?.[0]?.note).toContain("typical value");
  });

  test("from a standby nothing is fetched", () => {
    const restore = { ...there().restore, "hot-standby": figure(500, "group", 1) };
    const [row] = rows("hot-standby", { start: "follows", restore }) ?? [];
    expect(row?.value).toBe("about 0.5 s");
    expect(row?.note).toBe(
      "edge-b follows already and takes over. From the last time that power was restored from a standby.",
    );
    expect(rows("hot-standby"), "where none follows").toBeNull();
  });

  test("on a node that runs nothing: that its first query takes longer", () => {
    expect(rows("checkpoint", { start: "cold" })?.[0]?.note).toContain("the first query of a node takes");
  });

  test("a move is told as two rows", () => {
    expect(expectRows(forecast(), "edge-b", "standby", "power")?.map((row) => row.title)).toEqual([
      "Getting ready",
      "Pause",
    ]);
  });
});

describe("what to expect of a drain", () => {
  const leaving = (name: string, change: Partial<Leaving> = {}): Leaving => ({
    name,
    way: "standby",
    targets: ["edge-b"],
    forecast: forecast(),
    ...change,
  });
  const slow = forecast({ standby: { ready: figure(46_000), pause: figure(300) } });

  test("of one: how long it gets ready, and the pause", () => {
    expect(leavingSentence([leaving("power")], 1)).toBe(
      "Getting ready takes up to about 8.0 s while it keeps running; then its output pauses for up to about 0.2 s.",
    );
  });

  test("of several: the longest of them", () => {
    const both = [leaving("power"), leaving("Alarm", { forecast: slow })];
    expect(leavingSentence(both, 2)).toBe(
      "Each gets ready while it keeps running, which takes longest for Alarm (up to about 46 s); then its output pauses for up to about 0.3 s.",
    );
    expect(leavingSentence(both, 9)).toMatch(/^Each of the first 2 gets ready/);
  });

  test("of one that stops to move, and that the figure is a typical one", () => {
    expect(leavingSentence([leaving("power", { way: "stop-and-copy" })], 1)).toBe(
      "Its output pauses for up to about 12 s (typical values: too little has been measured here so far).",
    );
  });

  test("of what is not answered, and of nodes that it cannot go to: nothing", () => {
    expect(leavingSentence([leaving("power", { forecast: null })], 1)).toBe("");
    expect(leavingSentence([leaving("power", { targets: ["edge-c"] })], 1)).toBe("");
    expect(leavingSentence([], 0)).toBe("");
    const half = [leaving("power", { forecast: null }), leaving("Alarm")];
    expect(leavingSentence(half, 2)).toContain("takes longest for Alarm");
  });
});
