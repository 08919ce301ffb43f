import { describe, expect, test } from "vitest";
import { element, replica } from "../../shared/tests/fixtures";
import type { ReplicaNote } from "../../shared/types";
import type { CheckpointRow } from "../live/checkpoints";
import { goneWords, pickFor, rowsFor, sourcesFor, unknownWords, waysFor, type Known } from "../live/ways";

describe("ways to move", () => {
  test("live with a standby comes first; stop and copy says that output pauses", () => {
    const ways = waysFor(element(), "edge-b");
    expect(ways.map((way) => way.value)).toEqual(["standby", "stop-and-copy"]);
    expect(ways[1]?.note).toContain("output pauses");
    expect(ways[0]?.note).toContain("1.2 MB");
  });

  test("only stop and copy for what cannot be followed", () => {
    expect(waysFor(element({ follow: "none" }), "edge-b").map((way) => way.value)).toEqual(["stop-and-copy"]);
  });

  test("nothing is copied to a node that follows already", () => {
    const followed = element({ replicas: [replica()] });
    expect(waysFor(followed, "edge-b")[0]?.note).toContain("nothing is copied");
    expect(waysFor(followed, "edge-c")[0]?.note).not.toContain("nothing is copied");
  });

  test("a node that keeps copies of the checkpoints has little to fetch, and says why", () => {
    const checkpoint = { seq: 40, at: null, bytes: 79_700, where: ["edge-a", "edge-b", "central"] };
    const kept = element({ checkpoint });
    expect(waysFor(kept, "edge-b")[0]?.note).toContain("only what is new (edge-b keeps copies");
    expect(waysFor(kept, "edge-b")[0]?.note).not.toContain("79.7 KB");
    expect(waysFor(kept, "edge-c")[0]?.note).toContain("fetches about 79.7 KB and catches up");
  });
});

describe("places to restore from", () => {
  const row = (seq: number): CheckpointRow => ({
    seq,
    epoch: 3,
    at: null,
    bytes: 1000,
    bytes_new: null,
    node: null,
    where: ["central"],
  });
  const ALL: Known = { hotRefused: null, unknown: null, named: false };
  const sources = (hot: ReplicaNote | null, rows: CheckpointRow[], known: Partial<Known> = {}) =>
    sourcesFor(hot, rows, { ...ALL, ...known });
  const open = (...given: Parameters<typeof sources>) =>
    sources(...given).flatMap((source) => (source.disabled ? [] : source.value));
  const first = (...given: Parameters<typeof sources>) =>
    sources(...given).find((source) => source.tag === "default")?.value;

  test("the hot standby is the default where there is one, else the newest checkpoint", () => {
    expect(first(replica(), [row(40)])).toBe("hot-standby");
    expect(first(null, [row(40)])).toBe("newest");
  });

  test("each that there is, and the reason where there is none", () => {
    expect(open(replica(), [row(40), row(20)])).toEqual(["hot-standby", "newest", "older"]);
    expect(open(null, [row(40)])).toEqual(["newest"]);
    expect(open(null, [])).toEqual(["newest"]);
  });

  test("a standby on a node that takes nothing is not offered, with the reason", () => {
    const cordoned = { hotRefused: "The node is cordoned: it takes no new elements." };
    expect(open(replica(), [row(40)], cordoned)).toEqual(["newest"]);
    expect(first(replica(), [row(40)], cordoned)).toBe("newest");
    expect(sources(replica(), [row(40)], cordoned)[0]?.disabled).toContain("cordoned");
  });

  test("that there is no checkpoint is said only when it is known", () => {
    const loading = unknownWords({ rows: [], loading: true, error: undefined });
    const failed = unknownWords({ rows: [], loading: false, error: new Error("503") });
    for (const unknown of [loading, failed]) {
      const [, newest, older] = sources(null, [], { unknown });
      expect([newest?.note, older?.disabled]).toEqual([unknown, unknown]);
      expect(unknown).not.toBeNull();
    }
    const none = unknownWords({ rows: [], loading: false, error: undefined });
    expect(sources(null, [], { unknown: none })[1]?.note).toContain("There is none yet");
    expect(unknownWords({ rows: [row(40)], loading: false, error: new Error("503") })).toBeNull();
  });

  test("from a row of the list every checkpoint can be chosen, the newest too", () => {
    expect(rowsFor("older", [row(40)], true).map((each) => each.seq)).toEqual([40]);
    expect(rowsFor("older", [row(40), row(20)], false).map((each) => each.seq)).toEqual([20]);
    expect(open(null, [row(40)], { named: true })).toEqual(["newest", "older"]);
  });

  test("what is ordered is always one of those that are listed", () => {
    const listed = [row(40), row(20)];
    expect(pickFor(listed, null)).toBe(40);
    expect(pickFor([row(60), ...listed], 40)).toBe(40);
    expect(pickFor([row(20)], 40)).toBe(20);
    expect(pickFor([], 40)).toBeNull();
    expect(goneWords(listed, 10)).toContain("That checkpoint is no longer kept");
    expect(goneWords(listed, null)).toBe("Choose a checkpoint.");
  });
});
