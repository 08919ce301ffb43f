import { expect, test } from "vitest";
import type { FoundThing } from "../../shared/types";
import {
  branchOf,
  kindWords,
  matching,
  nodeFor,
  startOf,
  usable,
  WHOLE,
  type Branches,
} from "../browse/found";

const thing = (path: string, more: Partial<FoundThing> = {}): FoundThing => ({
  path,
  title: path,
  type: "",
  unit: "",
  inner: false,
  usable: false,
  holds: null,
  value: null,
  within: [],
  parts: [],
  ...more,
});
const branch = (...things: FoundThing[]) => ({ state: "there" as const, words: "", things });
const BRANCHES: Branches = {
  [WHOLE]: branch(thing("Press", { inner: true }), thing("Pump", { inner: true })),
  Press: branch(thing("Temperature", { usable: true }), thing("Strokes", { usable: true })),
};
const paths = (things: FoundThing[]) => things.map(({ path }) => path);

test("a part of a name finds what is shown, and what it lies in", () => {
  expect(paths(matching(BRANCHES, WHOLE, ""))).toEqual(["Press", "Pump"]);
  expect(paths(matching(BRANCHES, WHOLE, " temp"))).toEqual(["Press"]);
  expect(paths(matching(BRANCHES, WHOLE, "pu"))).toEqual(["Pump"]);
});

test("all that is shown can be ticked, and nothing that is closed or left out", () => {
  expect(paths(usable(BRANCHES, WHOLE, "", new Set()))).toEqual([]);
  expect(paths(usable(BRANCHES, WHOLE, "", new Set(["Press"])))).toEqual(["Temperature", "Strokes"]);
  expect(paths(usable(BRANCHES, WHOLE, "temp", new Set(["Press"])))).toEqual(["Temperature"]);
  expect(paths(usable(BRANCHES, WHOLE, "press", new Set(["Press"])))).toEqual(["Temperature", "Strokes"]);
});

test("a thing that lies in itself is shown, and not looked into again", () => {
  const looped: Branches = {
    [WHOLE]: branch(thing("A", { inner: true })),
    A: branch(thing("B", { inner: true, usable: true })),
    B: branch(thing("A", { inner: true }), thing("Speed", { usable: true })),
  };
  expect(paths(usable(looped, WHOLE, "", new Set(["A", "B"])))).toEqual(["B", "Speed"]);
  expect(paths(matching(looped, WHOLE, "speed"))).toEqual(["A"]);
  expect(paths(matching(looped, WHOLE, "nowhere"))).toEqual([]);
});

test("things are told with their type, unit and fields", () => {
  expect(kindWords(thing("t", { type: "Double", unit: "°C" }))).toBe("Double, °C");
  const part = { name: "a", type: "number" as const, key: false };
  expect(kindWords(thing("t", { type: "JSON object", parts: [part, part] }))).toBe("JSON object, 2 fields");
  expect(kindWords(thing("t", { parts: [part] }))).toBe("1 column");
});

test("where a thing lies is known from where it was looked for, unless the node says it", () => {
  const answer = { works: true, words: "", found: [thing("a"), thing("b", { within: ["X"] })] };
  expect(branchOf(answer, ["Press"]).things.map(({ within }) => within)).toEqual([["Press"], ["X"]]);
  expect(branchOf({ ...answer, works: false }, []).state).toBe("refused");
});

test("it looks from the node that will use the connection", () => {
  const nodes = [
    { name: "a", site: "hall", up: true },
    { name: "b", site: "yard", up: true },
    { name: "c", site: "yard", up: false },
  ];
  expect(nodeFor(nodes, {}, null)).toBe("a");
  expect(nodeFor(nodes, {}, "b")).toBe("b");
  expect(nodeFor(nodes, { node: "a" }, "b")).toBe("a");
  expect(nodeFor(nodes, { node: "c", site: "yard" }, "c")).toBe("b");
  expect(nodeFor([], {}, null)).toBe("");
});

test("a look begins where the element's parameter says", () => {
  const polls = { browsed_from: "path" };
  expect(startOf(polls, { params: { path: "/api" } })).toBe("/api");
  expect(startOf(polls, { params: {} })).toBe(WHOLE);
  expect(startOf({ browsed_from: "" }, { params: { path: "/api" } })).toBe(WHOLE);
});
