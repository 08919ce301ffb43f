import { describe, expect, test } from "vitest";
import { copiedTold, measuredRows, pauseLine, pauseTold } from "../pause";
import type { Handover } from "../types";
import { handover } from "./fixtures";

const done = (change: Partial<Handover>) => handover({ outcome: "done", ...change });
const pause = (change: Partial<NonNullable<Handover["pause"]>> = {}) => ({
  ms: 180,
  at_most: false,
  gap_ms: 283,
  waited_ms: 260,
  usual_ms: 80,
  ...change,
});

describe("the pause", () => {
  test("is told with what it was computed from", () => {
    const told = pauseTold(done({ gap_ms: 283, pause: pause() }));
    expect(told).toMatchObject({ value: "180 ms", known: true });
    expect(told.why).toBe(
      "From the last batch that edge-a wrote to the first of edge-b it took 283 ms. " +
        "Rows waited for 260 ms of that. " +
        "Rows usually wait for 80 ms, which does not count as a pause.",
    );
  });

  test("of rows that waited as long as usual is none", () => {
    const none = done({ pause: pause({ ms: 0, usual_ms: 500 }) });
    expect(pauseTold(none)).toMatchObject({ value: "none", note: "no row waited longer than usual" });
    expect(pauseLine(none)).toBe("Pause: none, no row waited longer than usual");
    expect(pauseLine(done({ pause: pause() }))).toBe("Pause: 180 ms");
  });

  test("is told in each phase as what it is then", () => {
    const at = (phase: string, change: Partial<Handover> = {}) =>
      pauseTold(handover({ phase, ...change })).value;
    for (const phase of ["PENDING", "PREPARE", "WARM"]) expect(at(phase)).toBe("none yet");
    expect(at("CUT")).toBe("not yet"); // the old owner still processes
    for (const phase of ["STOP", "COPY", "CLAIM"]) expect(at(phase)).toBe("it pauses now");
    expect(at("FINISH")).toBe("being measured");
    expect(at("CLAIM", { kind: "restoration" })).toBe("not yet");
  });

  test("is an upper bound where too little is known", () => {
    const unseen = pauseTold(done({ pause: pause({ ms: 203, at_most: true, waited_ms: null }) }));
    expect(unseen.value).toBe("at most 203 ms");
    expect(unseen.why).toContain("not known how much of that time rows waited");
    const young = pauseTold(done({ pause: pause({ ms: 260, at_most: true, usual_ms: null }) }));
    expect(young.value).toBe("at most 260 ms");
    expect(young.why).toContain("too few batches before");
  });

  test("is no figure where there is none", () => {
    for (const [given, value] of [
      [handover({ outcome: "failed" }), "not measured"],
      [done({}), "no input"],
    ] as const)
      expect(pauseTold(given)).toMatchObject({ value, known: false });
  });

  test("the raw figures are all there", () => {
    const measured = { last_commit_at_ms: 10, at_ms: 13, first_commit_at_ms: 360, usual_wait_ms: 100 };
    expect(measuredRows(done({ gap_ms: 350, measured })).map(([, value]) => value)).toEqual([
      "350 ms",
      "3 ms",
      "347 ms",
      "not known",
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
