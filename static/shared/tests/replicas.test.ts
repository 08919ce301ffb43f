import { describe, expect, test } from "vitest";
import { bestTarget, hotStandby, replicaWords, sortedReplicas, standbyNodes } from "../replicas";
import { element, node, replica } from "./fixtures";

describe("what a replica does", () => {
  test.each([
    [replica(), "following, caught up"],
    [replica({ behind: 2 }), "following, 2 batches behind"],
    [replica({ phase: "reading the journal", behind: 90 }), "reads what was done before it came"],
    [replica({ phase: "armed", armed: "h1" }), "ready to take over at once"],
    [replica({ role: "stopped", phase: "fenced" }), "locked out: another one took over"],
    [replica({ role: "owner", phase: "owning" }), "owning"],
  ])("%#", (given, words) => expect(replicaWords(given)).toBe(words));
});

const OWNER = replica({ node: "edge-a", role: "owner", phase: "owning" });
const NODES = [node("edge-a"), node("edge-b"), node("edge-c")];

test("owner first, then the standby that is nearest to taking over", () => {
  const given = element({
    replicas: [replica({ node: "edge-c", behind: 5 }), replica({ behind: 1 }), OWNER],
  });
  expect(sortedReplicas(given).map((each) => each.node)).toEqual(["edge-a", "edge-b", "edge-c"]);
});

describe("the hot standby", () => {
  const none = () => null;

  test("is one that follows, on a node that answers", () => {
    const given = element({ replicas: [OWNER, replica({ behind: 4 }), replica({ node: "edge-c" })] });
    expect(hotStandby(given, NODES, none)?.node).toBe("edge-c");
    const silent = [node("edge-a"), node("edge-b"), node("edge-c", { up: false })];
    expect(hotStandby(given, silent, none)?.node).toBe("edge-b");
  });

  test("is on a node that takes it, if one follows there", () => {
    const cordoned = (each: { name: string }) => (each.name === "edge-c" ? "It is cordoned." : null);
    const both = element({ replicas: [OWNER, replica({ behind: 4 }), replica({ node: "edge-c" })] });
    expect(hotStandby(both, NODES, cordoned)?.node).toBe("edge-b");
    const one = element({ replicas: [OWNER, replica({ node: "edge-c" })] });
    expect(hotStandby(one, NODES, cordoned)?.node).toBe("edge-c");
  });

  test("is none while the copy still starts, and never the owner's own node", () => {
    expect(
      hotStandby(element({ replicas: [OWNER, replica({ phase: "starting" })] }), NODES, none),
    ).toBeNull();
    expect(hotStandby(element({ replicas: [replica({ node: "edge-a" })] }), NODES, none)).toBeNull();
  });
});

test("all standbys are named: the wanted one, heard of or not, and what stays after a move", () => {
  const standby = { node: "edge-c", behind: null, armed: false, wanted: true };
  expect(standbyNodes(element({ replicas: [OWNER, replica()], standby }))).toEqual(["edge-c", "edge-b"]);
  expect(
    standbyNodes(element({ replicas: [OWNER, replica()], standby: { ...standby, node: "edge-b" } })),
  ).toEqual(["edge-b"]);
  expect(standbyNodes(element({ replicas: [OWNER] }))).toEqual([]);
  const starting = element({ replicas: [replica({ node: "edge-a" })] });
  expect(standbyNodes(starting)).toEqual([]);
});

describe("the node that is offered first", () => {
  const refused = (each: { name: string }) => (each.name === "edge-a" ? "It runs here already." : null);
  const busy = node("edge-b", { load: { cpu_ratio: 0.9 } });
  const idle = node("edge-c", { load: { cpu_ratio: 0.1 } });

  test("has the most CPU to spare, unless another follows already", () => {
    expect(bestTarget(element(), [NODES[0]!, busy, idle], refused)).toBe("edge-c");
    const followed = element({ replicas: [OWNER, replica({ node: "edge-b" })] });
    expect(bestTarget(followed, [NODES[0]!, busy, idle], refused)).toBe("edge-b");
  });

  test("is none when all refuse", () => {
    expect(bestTarget(element(), NODES, () => "no")).toBeNull();
  });
});
