import { expect, test } from "vitest";
import { careOf } from "../silence";
import { element, handover, node, phase, T0 } from "./fixtures";

const SILENT = node("edge-a", { up: false });
const RESTORATION = handover({
  kind: "restoration",
  strategy: "checkpoint",
  timeline: [phase("COPY", 1, null)],
});
const texts = (...given: Parameters<typeof careOf>) => careOf(...given).map((line) => line.text);

test("a restoration that runs is told with its phase, once for its group", () => {
  const elements = { "machine-power": [element({ status: "moving" })] };
  expect(texts(SILENT, elements, [RESTORATION, { ...RESTORATION, id: "h0", outcome: "failed" }])).toEqual([
    "power is being restored on edge-b: copying",
  ]);
});

test("what was restored since the node fell silent is told, what moved long before is not", () => {
  const ended = (minutes: number) =>
    handover({ outcome: "done", ended_at: new Date(T0 + minutes * 60_000).toISOString() });
  expect(texts(SILENT, {}, [ended(0.1)])).toEqual(["power now runs on edge-b"]);
  expect(texts(SILENT, {}, [ended(-30)])).toEqual([]);
});

test("what nobody restores waits, with the reason", () => {
  const waits = element({ status: "silent" });
  expect(texts(SILENT, { p: [waits] }, [])).toEqual(["power waits to be restored"]);
  const refused = {
    ...waits,
    actions: { restore: { allowed: false, reason: "there is no other node", note: null } },
  };
  expect(texts(SILENT, { p: [refused] }, [])).toEqual(["power waits: there is no other node"]);
});

test("elements of other nodes are left out", () => {
  expect(texts(SILENT, { p: [element({ node: "edge-c", status: "silent" })] }, [])).toEqual([]);
});
