import { describe, expect, test } from "vitest";
import {
  afterCancel,
  axisSpan,
  cancelling,
  cancelRefusal,
  durationOf,
  later,
  merged,
  phaseRows,
  phaseWords,
  shortPhase,
  wayBack,
  type PhaseRow,
} from "../handovers";
import type { Handover } from "../types";
import { element, handover, phase, replica, T0 } from "./fixtures";

const names = (given: Handover) => phaseRows(given).map((row) => `${row.phase} ${row.state}`);
const row = (given: Handover, name: string): PhaseRow => {
  const found = phaseRows(given).find((each) => each.phase === name);
  if (!found) throw new Error(`no row ${name}`);
  return found;
};

describe("the rows of a handover", () => {
  test("all phases are there from the first moment on, and stay through a whole live migration", () => {
    const steps = [
      [],
      [phase("PREPARE", 1, null)],
      [phase("PREPARE", 1, 4), phase("WARM", 4, null)],
      [phase("PREPARE", 1, 4), phase("WARM", 4, 9), phase("CUT", 9, null)],
    ];
    for (const timeline of steps)
      expect(phaseRows(handover({ timeline })).map((each) => each.phase)).toEqual([
        "PENDING",
        "PREPARE",
        "WARM",
        "CUT",
        "FINISH",
      ]);
  });

  test("one phase runs at a time, from the order on", () => {
    expect(names(handover())).toEqual([
      "PENDING active",
      "PREPARE todo",
      "WARM todo",
      "CUT todo",
      "FINISH todo",
    ]);
    expect(names(handover({ timeline: [phase("PREPARE", 1, 4), phase("WARM", 4, null)] }))).toEqual([
      "PENDING done",
      "PREPARE done",
      "WARM active",
      "CUT todo",
      "FINISH todo",
    ]);
  });

  test("a cut that turns into a claim has both, and its end is still to come", () => {
    const timeline = [
      phase("PREPARE", 1, 4),
      phase("WARM", 4, 9),
      phase("CUT", 9, 12),
      phase("CLAIM", 12, null),
    ];
    expect(names(handover({ timeline })).slice(3)).toEqual(["CUT done", "CLAIM active", "FINISH todo"]);
  });

  test("where it failed, and what was not reached", () => {
    const timeline = [phase("STOP", 1, 2), phase("COPY", 2, 5)];
    expect(names(handover({ strategy: "stop-and-copy", timeline, outcome: "failed" }))).toEqual([
      "PENDING done",
      "STOP done",
      "COPY failed",
      "CLAIM skipped",
      "FINISH skipped",
    ]);
  });

  test("cancelled before it began", () => {
    expect(names(handover({ outcome: "cancelled" }))[0]).toBe("PENDING done");
  });

  test("an entry PENDING of the server is not shown twice", () => {
    expect(names(handover({ timeline: [phase("PENDING", 0, null)] }))[0]).toBe("PENDING active");
    expect(names(handover({ timeline: [phase("PENDING", 0, null)] }))).toHaveLength(5);
  });

  test.each([
    ["hot-standby", ["PENDING", "CLAIM", "FINISH"]],
    ["checkpoint", ["PENDING", "COPY", "CLAIM", "FINISH"]],
    ["rewind", ["PENDING", "COPY", "CLAIM", "FINISH"]],
  ] as const)("phases of a restoration: %s", (strategy, expected) => {
    const rows = phaseRows(handover({ kind: "restoration", strategy }));
    expect(rows.map((each) => each.phase)).toEqual(expected);
  });
});

describe("times", () => {
  test("a phase that runs lasts until now; clocks that differ never make it negative", () => {
    const given = handover({ timeline: [phase("PREPARE", 1, null)] });
    expect(durationOf(row(given, "PREPARE"), T0 + 3000)).toBe(2000);
    expect(durationOf(row(given, "PREPARE"), T0 - 5000)).toBe(0);
    expect(durationOf(row(given, "WARM"), T0 + 3000)).toBeNull();
  });

  test("the axis grows in steps only", () => {
    expect([0, 900, 1000, 1001, 9999, 61_000].map(axisSpan)).toEqual([
      1000, 1000, 1000, 2000, 10_000, 120_000,
    ]);
    expect(axisSpan(2 * 3_600_000 + 1)).toBe(3 * 3_600_000);
  });
});

describe("in words", () => {
  const warm = (behind: number) => handover({ timeline: [phase("WARM", 1, null, { behind })] });

  test("how far behind the target is", () => {
    expect(phaseWords(warm(3), row(warm(3), "WARM"))).toBe(
      "edge-b is 3 batches behind; edge-a keeps running",
    );
    expect(phaseWords(warm(1), row(warm(1), "WARM"))).toContain("1 batch behind");
    expect(phaseWords(warm(0), row(warm(0), "WARM"))).toContain("has caught up");
  });

  test("why it takes long, where the target ran nothing before", () => {
    const cold = { ...warm(300), begun: { start: "cold" as const, bytes: null, had: false } };
    expect(phaseWords(cold, row(cold, "WARM"))).toContain("its first query takes a while to start");
    const level = { ...cold, timeline: warm(0).timeline };
    expect(phaseWords(level, row(level, "WARM"))).toContain("starts its first query, which takes a while");
  });

  test("a phase that is over is told without a figure that is old", () => {
    const over = handover({ timeline: [phase("WARM", 1, 2, { behind: 3 }), phase("CUT", 2, null)] });
    expect(phaseWords(over, row(over, "WARM"))).not.toContain("3 batches");
  });

  test("on a card", () => {
    expect(shortPhase(warm(2))).toBe("2 batches behind");
    expect(shortPhase(handover())).toBe("waiting");
  });
});

describe("a cancellation", () => {
  const restoration = handover({ kind: "restoration", strategy: "checkpoint", phase: "COPY" });
  const byItself = { ...restoration, created_by: null, reason: "automatically, 3 s after it fell silent" };

  test("leaves a migration with its origin; a drain does not order it again", () => {
    expect(afterCancel(handover(), "Power", true)).toBe("Power stays on edge-a.");
    const drain = handover({ created_by: null, reason: "drain of edge-a" });
    expect(afterCancel(drain, "Power", true)).toContain("unless edge-a is drained again");
    const leaving = handover({ created_by: null, reason: "shutdown of edge-a" });
    expect(afterCancel(leaving, "Power", true)).toContain("stays on edge-a, which is leaving");
    const byPolicy = handover({ created_by: null, reason: "policy night" });
    expect(afterCancel(byPolicy, "Power", true)).toContain("The policy night may move it again later");
  });

  test("leaves an element down whose node is down, and says when nobody tries again", () => {
    expect(afterCancel(restoration, "Power", false)).toContain("stays down until edge-a answers again");
    expect(afterCancel(restoration, "Power", true)).toBe("Power stays on edge-a.");
    expect(afterCancel(byItself, "Power", false)).toContain(
      "restores it again only when edge-a stops answering",
    );
    expect(afterCancel(restoration, "Power", false)).not.toContain("by itself");
  });

  test("that was asked for is under way before the cut, and too late after it", () => {
    expect(cancelRefusal(handover())).toBeNull();
    const asked = handover({ phase: "WARM", cancellable: false, cancel_requested: true });
    expect(cancelling(asked)).toBe(true);
    expect(cancelRefusal(asked)).not.toContain("too late");
    const late = { ...asked, phase: "CUT" };
    expect(cancelling(late)).toBe(false);
    expect(cancelRefusal(late)).toContain("too late to cancel");
    expect(cancelRefusal({ ...asked, phase: "FINISH" })).toContain("too late to cancel");
  });

  test("ends the wait of a restoration for a target that was told to own", () => {
    const claim = { ...restoration, phase: "CLAIM" };
    expect(cancelRefusal(claim)).toBeNull();
    expect(afterCancel(claim, "Power", false)).toContain("can be restored on another node");
    const asked = { ...claim, cancellable: false, cancel_requested: true };
    expect(cancelRefusal(asked)).toContain("as soon as edge-b runs the element, fails or falls silent");
    expect(cancelling({ ...asked, kind: "migration" })).toBe(false);
  });
});

describe("the later of two states", () => {
  const pushed = handover({ timeline: [phase("PREPARE", 1, 4), phase("WARM", 4, null)] });
  const asked = handover({ timeline: [phase("PREPARE", 1, null)] });
  const done = handover({ outcome: "done" });

  test("an older answer does not take back what was pushed", () => {
    expect(later(pushed, asked)).toBe(pushed);
    expect(later(asked, pushed)).toBe(pushed);
    expect(later(pushed, done)).toBe(done);
    expect(later(undefined, asked)).toBe(asked);
  });

  test("of two equally far the first", () => {
    const behind = { ...pushed };
    expect(later(behind, pushed)).toBe(behind);
  });
});

test("handovers that were asked for and pushed are one list, each in its latest state", () => {
  const at = (s: number, change: Partial<Handover>) =>
    handover({ created_at: new Date(T0 + s * 1000).toISOString(), ...change });
  const old = at(1, { id: "old", outcome: "done" });
  const moving = at(2, { id: "moving" });
  const moved = { ...moving, outcome: "done" as const };
  const fresh = at(3, { id: "fresh" });
  expect(merged([moving, old], [fresh, moved])).toEqual([fresh, moved, old]);
  expect(merged([moved, old], [moving])).toEqual([moved, old]);
  expect(merged([], [fresh])).toEqual([fresh]);
});

describe("the way back", () => {
  const done = handover({ outcome: "done" });
  const moved = element({ node: "edge-b" });

  test("is instant while the origin follows as a standby", () => {
    expect(wayBack(done, moved)).toEqual({ target: "edge-a", instant: false });
    const kept = { ...moved, replicas: [replica({ node: "edge-a" })] };
    expect(wayBack(done, kept)).toEqual({ target: "edge-a", instant: true });
    expect(wayBack(done, { ...kept, follow: "none" })?.instant).toBe(false);
  });

  test("is none when it did not arrive, has gone on elsewhere, or came from nowhere", () => {
    expect(wayBack(handover({ outcome: "failed" }), moved)).toBeNull();
    expect(wayBack(handover(), moved)).toBeNull();
    expect(wayBack(done, element({ node: "edge-c" }))).toBeNull();
    expect(wayBack({ ...done, origin: "" }, moved)).toBeNull();
    expect(wayBack(done, undefined)).toBeNull();
  });
});
