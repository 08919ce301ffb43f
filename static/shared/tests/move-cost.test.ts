import { describe, expect, test } from "vitest";
import { latency } from "../format";
import { costRows, freeWords, toNeighbours, totalRows, type Moving } from "../move-cost";
import type { MoveWay } from "../forecast";
import type { Forecast, MoveCost, NodeForecast, OtherNode } from "../types";

const COST: MoveCost = {
  bytes: 6_000_000,
  bytes_per_s: 3e6,
  latency_ms: 10,
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
    "Copied first": "6.0 MB, about 2.0 s",
    Line: "edge-a to edge-b, 3.0 MB/s, 10 ms one way",
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
  expect(copied({ bytes_per_s: null, copy_s: null })).toBe("6.0 MB");
});

test("the line over which state is copied is named, with what is known of it", () => {
  expect(told({ bytes_per_s: null, latency_ms: null }).Line).toBe("edge-a to edge-b, speed not known");
  expect(told({ same_site: true }).Line).toBe("edge-a to edge-b, within the site");
  expect(told({ bytes: 0 }, { start: "follows" })).not.toHaveProperty("Line");
});

describe("several moves to one node", () => {
  const moving = (
    change: Partial<MoveCost> = {},
    of: Partial<NodeForecast> = {},
    origin = "edge-a",
  ): Moving => {
    const there = { start: "warm", had: false, bytes: COST.bytes, ...of, cost: { ...COST, ...change } };
    return { origin, way: "standby", forecast: { nodes: { "edge-b": there as NodeForecast } } };
  };
  const totals = (...moves: Moving[]) =>
    totalRows(moves, "edge-b").map(({ title, value }) => `${title}: ${value}`);

  test("bytes and CPU are those after the last one, and each line is named once", () => {
    expect(totals(moving(), moving({ bytes: 3_000_000 }))).toEqual([
      "Copied in all: 9.0 MB, about 3.0 s",
      "Line: edge-a to edge-b, 3.0 MB/s, 10 ms one way",
      "CPU of edge-b: 25 % now, then about 50 %",
      "CPU of edge-a: 60 % now, then about 0 %",
    ]);
    const far = moving({ origin_cpu: { before: 0.5, after: 0.5 }, latency_ms: 40 }, {}, "cloud");
    expect(totals(moving(), far)).toEqual([
      "Copied in all: 12.0 MB, about 4.0 s",
      "Line: edge-a to edge-b, 3.0 MB/s, 10 ms one way",
      "Line: cloud to edge-b, 3.0 MB/s, 40 ms one way",
      "CPU of edge-b: 25 % now, then about 50 %",
      "CPU of edge-a: 60 % now, then about 20 %",
      "CPU of cloud: 50 %, the same as now",
    ]);
  });

  test("what is not known of one of them is not made up", () => {
    const late: Moving = { ...moving(), forecast: undefined };
    expect(totals(moving(), late)).toEqual([]);
    expect(totals()).toEqual([]);
    const [copied] = totals(moving(), moving({ bytes: null }));
    expect(copied).toBe("Copied in all: 6.0 MB and the state of 1 element without a checkpoint");
    expect(totals(moving(), moving({ bytes_per_s: null }))[0]).toBe("Copied in all: 12.0 MB");
    expect(totals(moving(), moving({ cpu: { before: 0.25, after: null } }))[2]).toBe(
      "CPU of edge-b: 25 % now",
    );
  });

  test("what a standby has already is not copied, and has no line", () => {
    const follows = moving({ bytes: 0 }, { start: "follows" });
    expect(totals(follows, follows).slice(0, 2)).toEqual([
      "Copied in all: nothing: standbys follow there",
      "CPU of edge-b: 25 % now, then about 50 %",
    ]);
    expect(totals(follows, moving())[0]).toBe("Copied in all: 6.0 MB, about 2.0 s");
  });
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
