import { describe, expect, test } from "vitest";
import { CARD } from "../places";
import {
  columnsOf,
  frameAt,
  laneAt,
  laneLayout,
  type Box,
  type LaneHead,
  type Placed,
  type Shadow,
} from "../lanes/layout";
import {
  deadNodes,
  draftLane,
  draftLaneAt,
  filledShare,
  laneHeads,
  leftNode,
  liveLane,
  nodeLane,
  shadowsOf,
} from "../lanes/lies";
import { lineMs } from "../lanes/lines";
import { placesTold, placeWords, waitingOf } from "../lanes/moves";
import { pinned } from "../lanes/dropping";
import { unitsOf } from "../lanes/units";
import { element, handover, node, phase, replica } from "../../shared/tests/fixtures";
import { DOCUMENT, OPERATORS } from "../../shared/tests/documents";
import { findElement } from "../../shared/document";
import type { QueuedMove } from "../../shared/types";

const placed = (id: string, lane: string, reads: string[] = [], more: Partial<Placed> = {}): Placed => ({
  id,
  lane: nodeLane(lane),
  reads,
  group: null,
  height: CARD.height,
  drawn: { x: 0, y: 0 },
  ...more,
});

const within = (inner: Box, outer: Box) =>
  inner.x >= outer.x &&
  inner.y >= outer.y &&
  inner.x + inner.width <= outer.x + outer.width &&
  inner.y + inner.height <= outer.y + outer.height;
const meet = (a: Box, b: Box) =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

const heads = (...nodes: [string, string?][]): LaneHead[] =>
  laneHeads(
    nodes.map(([name, site = ""]) => ({ name, site })),
    new Set(),
    false,
  );

describe("the lanes' layout", () => {
  const elements = [
    placed("readings", "edge-a"),
    placed("power", "edge-b", ["readings"]),
    placed("mean", "edge-b", ["readings"]),
    placed("alarm", "edge-a", ["power", "mean"]),
  ];
  const layout = laneLayout(heads(["edge-a"], ["edge-b"], ["edge-c"]), elements, [
    { element: "power", lane: nodeLane("edge-a"), role: "standby" },
    { element: "alarm", lane: nodeLane("edge-c"), role: "backup" },
  ]);
  const card = (id: string): Box => ({ ...layout.cards[id]!, width: CARD.width, height: CARD.height });
  const lane = (name: string) => layout.lanes.find(({ key }) => key === nodeLane(name))!;

  test("each card and each ghost lies in its lane, and nothing lies over another thing", () => {
    for (const { id, lane: key } of elements)
      expect(
        within(
          card(id),
          layout.lanes.find((each) => each.key === key)!,
        ),
      ).toBe(true);
    for (const ghost of layout.ghosts)
      expect(
        within(
          ghost,
          layout.lanes.find((each) => each.key === ghost.lane)!,
        ),
      ).toBe(true);
    const all = [...elements.map(({ id }) => card(id)), ...layout.ghosts];
    all.forEach((a, n) => all.slice(n + 1).forEach((b) => expect(meet(a, b)).toBe(false)));
    layout.lanes.forEach((a, n) => layout.lanes.slice(n + 1).forEach((b) => expect(meet(a, b)).toBe(false)));
  });

  test("rows flow to the right, in the same columns in all lanes", () => {
    expect(columnsOf(elements)).toEqual(
      new Map([
        ["readings", 0],
        ["power", 1],
        ["mean", 1],
        ["alarm", 2],
      ]),
    );
    expect(card("power").x).toBe(card("mean").x);
    expect(card("readings").x).toBeLessThan(card("power").x);
    expect(layout.ghosts.find(({ element: id }) => id === "power")?.x).toBe(card("power").x);
  });

  test("a place finds its lane, and what lies between two lanes finds none", () => {
    expect(laneAt(layout, card("power"))?.name).toBe("edge-b");
    const { x, y, height } = lane("edge-a");
    expect(laneAt(layout, { x: x + 5, y: y + height + 5 })).toBeNull();
  });

  test("a circle in a draft ends", () => {
    const circle = [placed("a", "edge-a", ["b"]), placed("b", "edge-a", ["a"])];
    expect([...columnsOf(circle).keys()].sort()).toEqual(["a", "b"]);
  });

  test("what runs as one lies together, apart from what lies beside it", () => {
    const grouped = [
      placed("x", "edge-a", [], { group: "g", drawn: { x: 0, y: 0 } }),
      placed("other", "edge-a", ["x"], { drawn: { x: 0, y: 10 } }),
      placed("y", "edge-a", ["x"], { group: "g", drawn: { x: 0, y: 20 } }),
    ];
    const { cards } = laneLayout(heads(["edge-a"]), grouped, []);
    expect(cards["x"]!.y).toBe(cards["y"]!.y);
    expect(cards["other"]!.y).toBeGreaterThan(cards["y"]!.y + CARD.height);
  });

  test("nodes of a site lie in its frame", () => {
    const found = laneLayout(heads(["edge-a", "hall"], ["edge-b", "hall"], ["far"]), [], []);
    expect(found.frames.map(({ site }) => site)).toEqual(["hall"]);
    const [frame] = found.frames;
    const inside = found.lanes.filter((each) => within(each, frame!)).map(({ name }) => name);
    expect(inside).toEqual(["edge-a", "edge-b"]);
    const beside = { x: frame!.x + 3, y: frame!.y + 3 };
    expect(frameAt(found, beside)).toBe(frame);
    const lane = found.lanes.find(({ name }) => name === "edge-b")!;
    expect(draftLaneAt(found, { x: lane.x + 3, y: lane.y + 3 })).toBe("node edge-b");
    expect(draftLaneAt(found, beside)).toBe("site hall");
    expect(draftLaneAt(found, { x: -3, y: -3 })).toBeNull();
  });
});

describe("50 nodes and 500 elements", () => {
  const nodes = Array.from({ length: 50 }, (_, n) => [`edge-${n}`, `hall-${n % 5}`] as [string, string]);
  const elements = Array.from({ length: 500 }, (_, n) =>
    placed(`e${n}`, `edge-${n % 10}`, n % 5 ? [`e${n - 1}`] : [], { drawn: { x: 0, y: n } }),
  );
  const shadows: Shadow[] = [
    { element: "e0", lane: nodeLane("edge-20"), role: "standby" },
    { element: "e1", lane: nodeLane("edge-21"), role: "backup" },
  ];
  const layout = laneLayout(heads(...nodes), elements, shadows);

  test("lanes fold to what concerns the pipeline, and each stays a place to drop something", () => {
    const open = layout.lanes.filter(({ folded }) => !folded).map(({ name }) => name);
    expect(open.sort()).toEqual(["edge-20", ...Array.from({ length: 10 }, (_, n) => `edge-${n}`)].sort());
    expect(layout.lanes).toHaveLength(50);
    layout.lanes.forEach((a, n) => layout.lanes.slice(n + 1).forEach((b) => expect(meet(a, b)).toBe(false)));
  });

  test("all cards have a place", () => {
    expect(Object.keys(layout.cards)).toHaveLength(500);
    expect(new Set(Object.values(layout.cards).map(({ x, y }) => `${x} ${y}`)).size).toBe(500);
  });
});

describe("in which lane an element lies", () => {
  test("one that runs lies with its owner, and a view in the dashboard", () => {
    expect(liveLane(element({ node: "edge-a" }))).toBe("node edge-a");
    expect(liveLane(element({ node: null, status: "view" }))).toBe("views");
    expect(liveLane(undefined)).toBe("anywhere");
  });

  test("one of a draft lies where it is pinned", () => {
    const drawn = { id: "power", type: "filter" };
    expect(draftLane({ ...drawn, node: "edge-b" }, false)).toBe("node edge-b");
    expect(draftLane({ ...drawn, site: "hall" }, false)).toBe("site hall");
    expect(draftLane(drawn, false)).toBe("anywhere");
  });

  test("a lane for a node that is no longer registered, and for a site of the draft", () => {
    const keys = laneHeads([node("edge-a")], new Set(["node gone", "site hall"]), true).map(({ key }) => key);
    expect(keys).toEqual(["anywhere", "node edge-a", "node gone", "site hall"]);
  });

  test("each other node shows once what it has: what arrives before what follows before what is kept", () => {
    const power = element({
      replicas: [replica({ node: "edge-b" }), replica({ node: "edge-c" })],
      checkpoint: { seq: 1, at: null, bytes: 1, where: ["edge-a", "edge-c", "edge-d"] },
    });
    const roles = Object.fromEntries(
      shadowsOf(power, handover({ target: "edge-b" }), null, null).map(({ lane, role }) => [lane, role]),
    );
    expect(roles).toEqual({ "node edge-b": "moving", "node edge-c": "standby", "node edge-d": "backup" });
  });

  test("a dead node shows what was restored elsewhere until it runs again", () => {
    const power = element({ node: "edge-b" });
    const restored = handover({ kind: "restoration", outcome: "done", origin: "edge-a", target: "edge-b" });
    const dead = deadNodes([
      node("edge-a", { up: false, silent_at: "2026-11-20T12:00:00Z" }),
      node("edge-b"),
    ]);
    expect(leftNode(restored, power, dead)).toBe("edge-a");
    expect(shadowsOf(power, undefined, null, "edge-a")).toEqual([
      { element: power.id, lane: "node edge-a", role: "left" },
    ]);
    expect(leftNode(restored, power, deadNodes([node("edge-a")]))).toBeNull();
    expect(leftNode({ ...restored, kind: "migration" }, power, dead)).toBeNull();
    expect(leftNode(restored, element({ node: "edge-c" }), dead)).toBeNull();
  });

  test("a ghost fills with what was copied, and is full once nothing is to be copied any more", () => {
    const begun = { start: "warm" as const, bytes: 1000, had: false };
    const copying = (bytes_copied: number) =>
      handover({
        begun,
        phase: "PREPARE",
        bytes_copied,
        timeline: [phase("PENDING", 0, 1), phase("PREPARE", 1, null)],
      });
    expect(filledShare(handover({ begun }))).toBe(0);
    expect(filledShare(copying(250))).toBe(0.25);
    expect(filledShare(copying(2000))).toBeLessThan(1);
    expect(filledShare(handover({ begun, phase: "WARM", timeline: [phase("WARM", 0, null)] }))).toBe(1);
  });
});

describe("several moves", () => {
  const move = (id: number, title: string, change: Partial<QueuedMove> = {}): QueuedMove => ({
    id,
    pipeline: "p",
    element: title,
    target: "edge-b",
    state: "waits",
    place: id,
    of: 3,
    waits_for: null,
    handover: null,
    message: "",
    created_at: "2026-11-20T12:00:00Z",
    created_by: "ada",
    ended_at: null,
    ...change,
  });
  const elements = [
    element({ id: "a", title: "Power", group: "g" }),
    element({ id: "b", title: "Alarm", group: "g" }),
    element({ id: "c", title: "File", group: "c" }),
  ];

  test("one that waits says its place, and for what moves before it", () => {
    expect(placeWords(move(2, "c", { waits_for: "a" }), elements)).toBe(
      "2nd of 3, waits for Power and Alarm",
    );
    expect(placeWords(move(1, "c"), elements)).toBe("1st of 3, waits");
    expect(placeWords(move(3, "c", { message: "It starts." }), elements)).toBe("3rd of 3, waits: It starts.");
    expect(placeWords(move(12, "c", { of: 13, waits_for: "gone" }), elements)).toBe(
      "12th of 13, waits for gone",
    );
  });

  test("the places of all that wait are told in one text, and none of what has moved", () => {
    const queue = [move(1, "c", { state: "moving" }), move(2, "a", { waits_for: "c" }), move(3, "c")];
    expect(placesTold(queue, elements)).toBe(
      "Power and Alarm to edge-b: 2nd of 3, waits for File. File to edge-b: 3rd of 3, waits.",
    );
    expect(placesTold([move(1, "c", { state: "done" })], elements)).toBe("");
  });

  test("what runs as one with an element that waits, waits too", () => {
    const queue = [move(1, "c", { state: "moving" }), move(2, "a")];
    expect(waitingOf(queue, elements, "b")?.id).toBe(2);
    expect(waitingOf(queue, elements, "c")).toBeUndefined();
  });
});

describe("what is dropped", () => {
  test("what runs as one moves as one, in the order of the streams", () => {
    const order = (id: string) => ["readings", "big", "file"].indexOf(id);
    expect(unitsOf(DOCUMENT, ["file", "big"], order)).toEqual([
      { lead: "big", members: ["readings", "big"] },
      { lead: "file", members: ["file"] },
    ]);
  });

  test("in a draft it is pinned to the node, put to the site, or left to Fogline", () => {
    const there = pinned(DOCUMENT, ["file"], "node edge-b", OPERATORS);
    expect(findElement(there, "file")?.node).toBe("edge-b");
    expect(pinned(there, ["file"], "node edge-b", OPERATORS)).toBe(there);
    const atSite = pinned(there, ["file"], "site hall", OPERATORS);
    expect(findElement(atSite, "file")).toMatchObject({ site: "hall" });
    expect(findElement(atSite, "file")?.node).toBeUndefined();
    expect(findElement(pinned(atSite, ["file"], "anywhere", OPERATORS), "file")?.site).toBeUndefined();
  });

  test("a view stays as it is: no node runs it", () => {
    const views = new Map([["csv-sink", { view: true }]]);
    expect(pinned(DOCUMENT, ["file"], "node edge-b", views)).toBe(DOCUMENT);
    const both = pinned(DOCUMENT, ["file", "big"], "node edge-b", views);
    expect([findElement(both, "file")?.node, findElement(both, "big")?.node]).toEqual([undefined, "edge-b"]);
  });
});

test("the latency of a line counts both ways, and nothing is made up", () => {
  const lines = [
    { a: "hall", b: "cloud", latency_ms: 12 },
    { a: "cloud", b: "yard", latency_ms: null },
    { a: "yard", b: "cloud", latency_ms: 30 },
  ];
  expect(lineMs(lines, "hall", "cloud")).toBe(12);
  expect(lineMs(lines, "cloud", "hall")).toBe(12);
  expect(lineMs(lines, "cloud", "yard")).toBe(30);
  expect(lineMs(lines, "hall", "yard")).toBeNull();
  expect(lineMs(lines, "hall", "hall")).toBeNull();
});
