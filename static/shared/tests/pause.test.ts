import { describe, expect, test } from "vitest";
import { copiedTold, measuredRows, pauseTold } from "../pause";
import type { Handover } from "../types";
import { handover } from "./fixtures";

const done = (change: Partial<Handover>) => handover({ outcome: "done", ...change });
const pause = (ms: number, usual_ms: number | null, by: "outputs" | "commits" = "outputs") => ({
  ms,
  by,
  between_ms: ms + (usual_ms ?? 0),
  usual_ms,
});

describe("the pause", () => {
  test("is told with what it was computed from", () => {
    const told = pauseTold(done({ gap_ms: 1300, pause: pause(300, 1000) }));
    expect(told.value).toBe("300 ms");
    expect(told.why).toContain("From the last output of edge-a to the first of edge-b it took 1.30 s");
    expect(told.why).toContain("Usually it takes 1.00 s from one to the next");
  });

  test("of an output that came as usual is none", () => {
    expect(pauseTold(done({ pause: { ...pause(0, 1000), between_ms: 700 } })).value).toBe("none");
  });

  test("of what writes seldom is the time in which nobody processed", () => {
    const told = pauseTold(done({ pause: pause(250, 100, "commits") }));
    expect([told.value, told.known]).toEqual(["250 ms", true]);
    expect(told.why).toContain("its commits were used");
  });

  test("is an upper bound where it is not known what is usual", () => {
    expect(pauseTold(done({ pause: pause(350, null) })).value).toBe("at most 350 ms");
    const before = pauseTold(done({ gap_ms: 1300 }));
    expect([before.value, before.why]).toEqual([
      "at most 1.30 s",
      expect.stringContaining("was not recorded"),
    ]);
  });

  test("is no figure where there is none", () => {
    for (const [given, value] of [
      [handover(), "not yet"],
      [handover({ outcome: "failed" }), "not measured"],
      [done({}), "no input"],
    ] as const)
      expect(pauseTold(given)).toMatchObject({ value, known: false });
  });

  test("the raw figures are all there", () => {
    const measured = { last_commit_at_ms: 10, first_commit_at_ms: 360, usual_commit_ms: 100 };
    expect(measuredRows(done({ gap_ms: 1300, measured })).map(([, value]) => value)).toEqual([
      "1.30 s",
      "not known",
      "350 ms",
      "100 ms",
    ]);
  });
});

describe("what was copied", () => {
  const begun = { start: "warm", bytes: 79_700, had: false } as const;
  const told = (change: Partial<Handover>) => copiedTold(done({ bytes_copied: 0, ...change }));

  test("is as much as travelled", () => {
    expect(told({ bytes_copied: 12_000, begun }).value).toBe("12.0 KB");
  });

  test("is nothing new where the target kept copies, and that is said", () => {
    const kept = told({ begun: { ...begun, had: true } });
    expect(kept.value).toBe("nothing new");
    expect(kept.why).toContain(
      "edge-b keeps copies of its checkpoints, so it had the state already (79.7 KB)",
    );
  });

  test("is nothing where the target followed, or where there was nothing", () => {
    expect(told({ begun: { ...begun, start: "follows" } }).why).toContain("followed as a standby");
    expect(told({ strategy: "hot-standby" }).why).toContain("followed as a standby");
    expect(told({ begun: { ...begun, bytes: null } }).why).toContain("no checkpoint");
    expect(told({ begun }).why).toContain("had the state already");
    expect(told({ begun, outcome: null }).value).toBe("nothing yet");
  });
});
