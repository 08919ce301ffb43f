import { describe, expect, test } from "vitest";
import { handover, phase, T0 } from "../../shared/tests/fixtures";
import type { Handover, HandoverDetails } from "../../shared/types";
import { relative, shifted, ticksOf, tracksOf, zoomed } from "../handover/tracks";

const CUT = T0 + 9_000;
const done = (change: Partial<Handover> = {}): Handover =>
  handover({
    outcome: "done",
    ended_at: new Date(T0 + 10_000).toISOString(),
    timeline: [
      phase("PREPARE", 1, 4),
      phase("WARM", 4, 8.9),
      phase("CUT", 8.9, 9.2),
      phase("FINISH", 9.2, 10),
    ],
    measured: { at_ms: CUT, last_commit_at_ms: CUT, first_commit_at_ms: CUT + 35 },
    pause: { ms: 20, at_most: false, gap_ms: 35, waited_ms: 30, usual_ms: 10 },
    ...change,
  });
const written: HandoverDetails["written"] = {
  marks: [
    { what: "armed", at_ms: CUT - 300 },
    { what: "announced", at_ms: CUT - 250 },
    { what: "released", at_ms: CUT },
  ],
  batches: [
    { at_ms: CUT - 50, node: "edge-a", rows: 4, wait_ms: 12 },
    { at_ms: CUT, node: "edge-a", rows: 4, wait_ms: null },
    { at_ms: CUT + 35, node: "edge-b", rows: 5, wait_ms: 30 },
  ],
};

describe("a handover as two tracks", () => {
  const tracks = tracksOf(done(), written, 0);

  test("has the change of owner at zero, and each batch with the node that committed it", () => {
    expect(tracks.zero_ms).toBe(CUT);
    expect(tracks.origin.batches.map(({ from, at }) => [from, at])).toEqual([
      [-62, -50],
      [0, 0],
    ]);
    expect(tracks.target.batches.map(({ from, at }) => [from, at])).toEqual([[5, 35]]);
  });

  test("says what each node does, one after the other", () => {
    const roles = (each: (typeof tracks)["origin"]) => each.stretches.map(({ role, from }) => [role, from]);
    expect(roles(tracks.origin)[1]).toEqual(["follows", 0]);
    expect(roles(tracks.target)).toEqual([
      ["fetches", -8000],
      ["follows", -5000],
      ["owns", 0],
    ]);
  });

  test("tells the moments in their order, and by which clock", () => {
    expect(tracks.moments.map(({ at, words, clock }) => [at, words, clock])).toEqual([
      [-9000, "The move is ordered", "control"],
      [-300, "edge-b has armed itself as the successor", "broker"],
      [-250, "edge-a announces its last batches", "broker"],
      [0, "edge-a releases: edge-b owns", "broker"],
      [0, "Last batch of edge-a", "broker"],
      [5, "A row waits that edge-b is to process", "broker"],
      [35, "First output of edge-b", "broker"],
      [1000, "The move has ended", "control"],
    ]);
  });

  test("draws as pause exactly what the server says", () => {
    expect(tracks.wait).toEqual({ from: 5, usual: 15, to: 35 });
    expect(tracks.wait!.to - tracks.wait!.usual).toBe(20);
  });

  test("shows the last batches before the cut and the first after it", () => {
    expect(tracks.cut!.from).toBeLessThan(-50);
    expect(tracks.cut!.to).toBeGreaterThan(35);
    expect(tracks.cut!.to - tracks.cut!.from).toBeLessThan(1000);
  });

  test("is drawn without batches, and while it runs", () => {
    expect(tracksOf(done(), null, 0).moments).toContainEqual({
      at: 0,
      on: "both",
      words: "edge-b owns",
      clock: "broker",
    });
    const running = handover({ timeline: [phase("PREPARE", 1, 4), phase("WARM", 4, null)] });
    const now = tracksOf(running, null, T0 + 6_000);
    expect(now.cut).toBeNull();
    expect(now.zero_ms).toBe(T0);
    expect(now.target.stretches.at(-1)).toMatchObject({ role: "follows", from: 4000 });
    expect(now.origin.stretches).toHaveLength(1);
  });

  test("leaves a restoration's silent node with what it wrote", () => {
    const restored = tracksOf(
      done({
        kind: "restoration",
        strategy: "checkpoint",
        timeline: [phase("COPY", 1, 3), phase("CLAIM", 3, 9.1), phase("FINISH", 9.1, 10)],
        measured: { at_ms: CUT, last_commit_at_ms: CUT - 12_000, first_commit_at_ms: CUT + 35 },
      }),
      null,
      0,
    );
    expect(restored.origin.stretches).toEqual([{ role: "owns", from: restored.whole.from, to: -12_000 }]);
    expect(restored.target.stretches.map(({ role }) => role)).toEqual(["fetches", "claims", "owns"]);
    expect(restored.whole.from).toBeLessThan(-12_000);
  });
});

describe("the time axis", () => {
  const bounds = { from: -1000, to: 1000 };

  test("has round times", () => {
    expect(ticksOf({ from: -62, to: 90 }, 7)).toEqual([-50, 0, 50]);
    expect(ticksOf({ from: -3, to: 3 }, 7)).toEqual([-3, -2, -1, 0, 1, 2, 3]);
    expect(relative(-120)).toBe("−120 ms");
    expect(relative(0)).toBe("0");
    expect(relative(1500)).toBe("+1.50 s");
  });

  test("is never longer than the move, nor shorter than 10 ms", () => {
    expect(zoomed({ from: -500, to: 500 }, 4, bounds)).toEqual(bounds);
    expect(zoomed({ from: 0, to: 12 }, 0.5, bounds)).toEqual({ from: 1, to: 11 });
    expect(zoomed({ from: 900, to: 1000 }, 2, bounds)).toEqual({ from: 800, to: 1000 });
    expect(shifted({ from: 0, to: 900 }, 0.5, bounds)).toEqual({ from: 100, to: 1000 });
  });
});
