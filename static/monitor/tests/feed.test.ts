import { expect, test } from "vitest";
import { partsSay, withParts, type FeedLine } from "../feed";

const event = (id: number, kind: string, more: Partial<FeedLine> = {}): FeedLine => ({
  id,
  at: "2026-11-28T00:00:00Z",
  severity: "info",
  kind,
  pipeline: null,
  element: null,
  node: "edge-a",
  message: kind,
  detail: {},
  cause: null,
  ...more,
});

const of = (element: string) => ({ pipeline: "p", element, cause: 1 });

// newest first, as they are listed
const FAILURE = [
  event(9, "pipeline.deployed", { node: null }),
  event(8, "node.up", { cause: 1 }),
  event(7, "handover.done", of("x")),
  event(6, "handover.done", of("y")),
  event(5, "element.not_restored", { ...of("z"), severity: "error" }),
  event(3, "element.restoring", { ...of("y"), severity: "warning" }),
  event(2, "element.restoring", { ...of("x"), severity: "warning" }),
  event(1, "node.silent", { severity: "error" }),
];

test("a node's failure is one event with what follows from it", () => {
  const told = withParts(FAILURE);
  expect(told.map(({ event, parts }) => [event.kind, parts.length])).toEqual([
    ["pipeline.deployed", 0],
    ["node.silent", 6],
  ]);
  const alone = new Map<string, number>();
  expect(partsSay(told[1]!.parts, alone)).toBe("2 elements restored, 1 not restored, the node is up again");
  expect(partsSay(FAILURE.slice(5, 7), alone)).toBe("2 being restored");
  const several = new Map([["p x", 3]]);
  expect(partsSay(told[1]!.parts, several), "all that run as one count").toMatch(/^4 elements restored/);
});

test("what follows from something that is not listed stands for itself, as do lines without an id", () => {
  const [part] = FAILURE.slice(2);
  const line = { ...event(0, "node.silent"), id: undefined as never };
  expect(withParts([part!, line, line])).toHaveLength(3);
});
