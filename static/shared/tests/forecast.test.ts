import { describe, expect, test } from "vitest";
import { basisWords, expectation, inSentences, roughly } from "../forecast";
import type { Expected, Forecast, NodeForecast } from "../types";

const figure = (ms: number, basis: Expected["basis"] = "group", n = 3): Expected => ({ ms, basis, n });
const there = (change: Partial<NodeForecast> = {}): NodeForecast => ({
  start: "warm",
  bytes: 79_700,
  had: false,
  standby: { ready: figure(8000), pause: figure(180) },
  "stop-and-copy": { ready: null, pause: figure(12_000, "typical", 0) },
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
  expect(words("group", 1)).toBe("As the last time that power moved.");
  expect(words("group", 3)).toBe("By the last 3 moves of power.");
  expect(words("node", 1)).toBe("By the last move to edge-b.");
  expect(words("pipeline", 2)).toBe("By the last 2 moves in this pipeline.");
  expect(words("typical", 0)).toContain("typical value");
});

describe("what to expect", () => {
  test("of a move with a standby: how long it gets ready, and the pause", () => {
    const expected = expectation(forecast(), "edge-b", "standby", "power");
    expect(expected).toMatchObject({ ready: "about 8.0 s", pause: "about 0.2 s" });
    expect(expected?.readyNote).toContain(
      "edge-b fetches the state and starts a query; power goes on meanwhile",
    );
    expect(expected && inSentences(expected)).toBe(
      "Getting ready takes about 8.0 s; then output pauses for about 0.2 s. By the last 3 moves of power.",
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
