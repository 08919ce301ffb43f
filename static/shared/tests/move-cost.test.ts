import { expect, test } from "vitest";
import { latency } from "../format";
import { costRows, freeWords, toNeighbours } from "../move-cost";
import type { MoveWay } from "../forecast";
import type { Forecast, MoveCost, NodeForecast, OtherNode } from "../types";

const COST: MoveCost = {
  bytes: 6_000_000,
  bytes_per_s: 3e6,
  copy_s: 2,
  same_site: false,
  cpu: { before: 0.25, after: 0.375 },
  origin_cpu: { before: 0.6, after: 0.2 },
  upstream_ms: { before: 10, after: 0 },
  downstream_ms: { before: null, after: null },
};

function told(change: Partial<MoveCost> = {}, of: Partial<NodeForecast> = {}, way: MoveWay = "standby") {
  const cost = { ...COST, ...change };
  const there = { start: "warm", had: false, bytes: COST.bytes, ...of, cost } as NodeForecast;
  const forecast: Forecast = { nodes: { "edge-b": there } };
  return Object.fromEntries(
    costRows(forecast, "edge-b", way, "edge-a").map(({ title, value }) => [title, value]),
  );
}

test("a line each; ways of which nothing is known for any node are left out", () => {
  expect(told()).toEqual({
    "Copied first": "6.0 MB at 3.0 MB/s, about 2.0 s",
    "CPU of edge-b": "25 % now, then about 38 %",
    "CPU of edge-a": "60 % now, then about 20 %",
    "From its inputs": "10 ms now, then same site",
  });
  expect(told({ upstream_ms: null })).not.toHaveProperty("From its inputs");
  expect(costRows(null, "edge-b", "standby", null)).toEqual([]);
  expect(costRows({ nodes: {} }, "edge-b", "standby", null)).toEqual([]);
});

test("what need not be copied says why, and what is not known is not made up", () => {
  const copied = (...given: Parameters<typeof told>) => told(...given)["Copied first"];
  expect(copied({ bytes: 0, copy_s: 0 }, { had: true })).toContain("newest checkpoint is there");
  expect(copied({ bytes: 0, copy_s: 0 }, { start: "follows" })).toContain("a standby follows");
  expect(told({ bytes: 0, copy_s: 0 }, { start: "follows" }, "stop-and-copy").Copied).toContain("6.0 MB");
  expect(copied({ bytes: null, copy_s: null })).toContain("no checkpoint of it yet");
  expect(copied({ bytes_per_s: null, copy_s: null })).toBe("6.0 MB, over a line of unknown speed");
  expect(copied({ same_site: true, bytes_per_s: null, copy_s: null })).toBe("6.0 MB, within the site");
});

test("a node that would not keep up is told", () => {
  const cpu = (before: number | null, after: number | null) =>
    told({ cpu: { before, after } })["CPU of edge-b"];
  expect(cpu(0.8, 1.2)).toBe("80 % now, then about 120 %, which is more than it has");
  expect(cpu(0.8, 0.8)).toBe("80 %, the same as now");
  expect(cpu(0.8, null)).toBe("80 % now");
  expect(cpu(null, null)).toBe("not known");
});

test("other nodes", () => {
  const other: OtherNode = {
    node: "edge-b",
    refusal: null,
    cores: 2,
    cores_free: 1.46,
    upstream_ms: 0,
    downstream_ms: 12,
    state: "none",
    warnings: [],
  };
  expect(freeWords(other)).toBe("1.5 of 2");
  expect(freeWords({ ...other, cores_free: null })).toBe("–");
  expect(toNeighbours(other)).toBe(12);
  expect(toNeighbours({ ...other, upstream_ms: null, downstream_ms: null })).toBeNull();
});

test("a latency has a decimal where that says something", () => {
  expect([0.437, 9.96, 12.4].map(latency)).toEqual(["0.4 ms", "10 ms", "12 ms"]);
});
