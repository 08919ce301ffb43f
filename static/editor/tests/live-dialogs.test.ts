import { describe, expect, test } from "vitest";
import { element, replica } from "../../shared/tests/fixtures";
import type { CheckpointRow } from "../live/checkpoints";
import { sourcesFor, waysFor } from "../live/ways";

const never = () => null;

describe("ways to move", () => {
  test("live with a standby comes first; stop and copy says that output pauses", () => {
    const ways = waysFor(element(), "edge-b", never);
    expect(ways.map((way) => way.value)).toEqual(["standby", "stop-and-copy"]);
    expect(ways[1]?.note).toContain("output pauses");
    expect(ways[0]?.note).toContain("1.2 MB");
  });

  test("only stop and copy for what cannot be followed", () => {
    expect(waysFor(element({ follow: "none" }), "edge-b", never).map((way) => way.value)).toEqual([
      "stop-and-copy",
    ]);
  });

  test("nothing is copied to a node that follows already", () => {
    const followed = element({ replicas: [replica()] });
    expect(waysFor(followed, "edge-b", never)[0]?.note).toContain("nothing is copied");
    expect(waysFor(followed, "edge-c", never)[0]?.note).not.toContain("nothing is copied");
  });

  test("with the last gap of that way, when one was measured", () => {
    const ways = waysFor(element(), "edge-b", (way) => (way === "standby" ? 85 : null));
    expect(ways[0]?.note).toContain("the gap was 85 ms");
    expect(ways[1]?.note).not.toContain("the gap was");
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
  const open = (...given: Parameters<typeof sourcesFor>) =>
    sourcesFor(...given).flatMap((source) => (source.disabled ? [] : source.value));
  const first = (...given: Parameters<typeof sourcesFor>) =>
    sourcesFor(...given).find((source) => source.tag === "default")?.value;

  test("the hot standby is the default where there is one, else the newest checkpoint", () => {
    expect(first(replica(), [row(40)])).toBe("hot-standby");
    expect(first(null, [row(40)])).toBe("newest");
  });

  test("each that there is, and the reason where there is none", () => {
    expect(open(replica(), [row(40), row(20)])).toEqual(["hot-standby", "newest", "older"]);
    expect(open(null, [row(40)])).toEqual(["newest"]);
    expect(open(null, [])).toEqual(["newest"]);
  });
});
