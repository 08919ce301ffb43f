import { describe, expect, test } from "vitest";
import {
  ENDED_HANDOVERS_MAX,
  EVENTS_MAX,
  nodeNow,
  nothing,
  reduce,
  type LiveData,
  type LiveMessage,
} from "../live-reducer";
import type { Alarm, LiveElement, LogEvent } from "../types";
import { handover, node } from "./fixtures";

const SNAPSHOT: LiveMessage = {
  type: "snapshot",
  n: 0,
  data: {
    nodes: [node("edge-a")],
    pipelines: [],
    elements: {},
    handovers: [],
    moves: [],
    operations: [],
    events: [],
    alarms: [],
  },
};
const after = (...messages: LiveMessage[]): LiveData =>
  messages.reduce((state, message) => reduce(state, message).state, nothing);

describe("following the server", () => {
  test("updates before the snapshot are not taken", () => {
    expect(after({ type: "nodes", n: 1, data: [node("x")] }).nodes).toEqual([]);
  });

  test("a gap asks for a resync, and nothing is taken until the snapshot is here", () => {
    const { state, resync } = reduce(after(SNAPSHOT), { type: "nodes", n: 2, data: [] });
    expect(resync).toBe(true);
    expect(state.nodes).toHaveLength(1);
    expect(reduce(state, { type: "nodes", n: 3, data: [] })).toEqual({ state, resync: false });
    expect(reduce(state, { ...SNAPSHOT, n: 3 }).state.n).toBe(3);
  });

  test("a message that was already taken changes nothing", () => {
    const state = after(SNAPSHOT, { type: "nodes", n: 1, data: [] });
    expect(reduce(state, { type: "nodes", n: 1, data: [node("again")] }).state).toBe(state);
  });

  test("a type from a newer server counts and is passed over", () => {
    const weather = { type: "weather", n: 1, data: {} } as unknown as LiveMessage;
    expect(after(SNAPSHOT, weather).n).toBe(1);
  });
});

describe("what the messages change", () => {
  test("elements of one pipeline leave the others alone", () => {
    const of = (id: string) => [{ id } as LiveElement];
    const state = after(
      SNAPSHOT,
      { type: "elements", n: 1, pipeline: "a", data: of("x") },
      { type: "elements", n: 2, pipeline: "b", data: of("y") },
    );
    expect(Object.keys(state.elements)).toEqual(["a", "b"]);
  });

  test("nodes are replaced by those of now", () => {
    expect(after(SNAPSHOT, { type: "nodes", n: 1, data: [] }).nodes).toEqual([]);
  });

  test("a node that was removed is gone, whatever the page loaded first", () => {
    const loaded = node("edge-a");
    expect(nodeNow(nothing, "edge-a", undefined)).toBeUndefined();
    expect(nodeNow(nothing, "edge-a", loaded)).toBe(loaded);
    expect(nodeNow(after(SNAPSHOT), "edge-a", loaded)).toMatchObject({ name: "edge-a", up: true });
    expect(nodeNow(after(SNAPSHOT, { type: "nodes", n: 1, data: [] }), "edge-a", loaded)).toBeNull();
  });

  test("a handover is shown once, the newest first, and keeps its place when it changes", () => {
    const state = after(
      SNAPSHOT,
      { type: "handover", n: 1, data: handover({ id: "1", phase: "STOP" }) },
      { type: "handover", n: 2, data: handover({ id: "2", phase: "STOP" }) },
      { type: "handover", n: 3, data: handover({ id: "1", phase: "COPY" }) },
    );
    expect(state.handovers.map(({ id, phase }) => [id, phase])).toEqual([
      ["2", "STOP"],
      ["1", "COPY"],
    ]);
  });

  test("ended handovers are bounded, those that run are all kept", () => {
    const many = ENDED_HANDOVERS_MAX + 10;
    const given = Array.from({ length: 2 * many }, (_, n) =>
      handover({ id: String(n), outcome: n < many ? null : "done" }),
    );
    const state = given.reduce<LiveData>(
      (old, data, index) => reduce(old, { type: "handover", n: index + 1, data }).state,
      after(SNAPSHOT),
    );
    expect(state.handovers.filter(({ outcome }) => outcome === null)).toHaveLength(many);
    expect(state.handovers.filter(({ outcome }) => outcome === "done")).toHaveLength(ENDED_HANDOVERS_MAX);
    expect(state.handovers[0]?.id).toBe(String(2 * many - 1));
  });

  test("alarms are updated by id, and stay in their order: the worst first, then the newest", () => {
    const alarm = (id: number, severity: Alarm["severity"], count = 1) => ({ id, severity, count }) as Alarm;
    const state = after(
      SNAPSHOT,
      { type: "alarms", n: 1, data: { changed: [alarm(1, "warning"), alarm(2, "info")], gone: [] } },
      { type: "alarms", n: 2, data: { changed: [alarm(3, "critical"), alarm(4, "warning")], gone: [2] } },
      { type: "alarms", n: 3, data: { changed: [alarm(1, "warning", 7)], gone: [] } },
    );
    expect(state.alarms.map(({ id, count }) => [id, count])).toEqual([
      [3, 1],
      [4, 1],
      [1, 7],
    ]);
  });

  test("events are bounded", () => {
    const event = (index: number) => ({ message: String(index) }) as LogEvent;
    const state = Array.from({ length: EVENTS_MAX + 50 }).reduce<LiveData>(
      (old, _, index) => reduce(old, { type: "event", n: index + 1, data: event(index) }).state,
      after(SNAPSHOT),
    );
    expect(state.events).toHaveLength(EVENTS_MAX);
    expect(state.events[0]?.message).toBe(String(EVENTS_MAX + 49));
  });
});
