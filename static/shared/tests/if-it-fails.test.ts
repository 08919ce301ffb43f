import { expect, test } from "vitest";
import { afterTime, afterWords, failureWords } from "../if-it-fails";
import type { GroupAfter } from "../types";

const after = (changes: Partial<GroupAfter> = {}): GroupAfter => ({
  pipeline: "p",
  element: "power",
  titles: ["Power"],
  target: "edge-b",
  way: "checkpoint",
  expected: { ms: 4000, least_ms: 4000, most_ms: 4000, basis: "typical", n: 0 },
  bytes: 5000,
  by_itself: true,
  reason: null,
  ...changes,
});

test("how each goes on, and why one does not", () => {
  expect(afterWords(after())).toBe("Automatically: its newest checkpoint is fetched, 5.0 KB.");
  expect(afterWords(after({ bytes: 0 }))).toContain("is there already");
  expect(afterWords(after({ bytes: null }))).toContain("it starts from its newest checkpoint");
  expect(afterWords(after({ way: "hot-standby", bytes: null }))).toContain("its hot standby takes over");
  expect(afterWords(after({ by_itself: false, reason: "it is held" }))).toContain("(it is held)");
  expect(afterWords(after({ target: null, way: null, reason: "there is no other node" }))).toBe(
    "It does not run: there is no other node.",
  );
});

test("the time counts the silence only where nobody has to order it", () => {
  expect(afterTime(after(), 3)?.value).toBe("about 7.0 s");
  expect(afterTime(after({ by_itself: false }), 3)?.value).toBe("about 4.0 s");
  expect(afterTime(after({ target: null, way: null }), 3)).toBeNull();
});

test("one sentence says what would not run and what would wait", () => {
  const words = (...groups: GroupAfter[]) => failureWords("edge-a", { groups, silence_s: 3, backups: [] });
  expect(words(after())).toContain("Everything would continue on other nodes automatically");
  const still = after({ target: null, way: null });
  expect(words(after(), still, still)).toContain("Of its groups, 2 would not run");
  expect(words(after({ by_itself: false }), still)).toContain(
    "Of its groups, one would not run until a node can take it, and one would wait",
  );
});
