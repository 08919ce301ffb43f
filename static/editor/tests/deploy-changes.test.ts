import { expect, test } from "vitest";
import type { DeployChange } from "../../shared/types";
import {
  deployRefusal,
  grouped,
  isFirst,
  nowWords,
  problemWords,
  sectionText,
  toAgree,
  untouched,
} from "../deploy-changes";

const change = (element: string, kind: DeployChange["change"], reason: string | null = null) => ({
  element,
  change: kind,
  reason,
  path: null,
});

test("the most serious first; what does not change is only counted", () => {
  const changes = [
    change("a", "unchanged"),
    change("b", "added"),
    change("c", "upgraded", "size 10 to 20"),
    change("d", "incompatible", "the key changes"),
    change("e", "unchanged"),
  ];
  expect(grouped(changes).map((each) => [each.change, each.elements.map(({ element }) => element)])).toEqual([
    ["incompatible", ["d"]],
    ["upgraded", ["c"]],
    ["added", ["b"]],
  ]);
  expect(untouched(changes)).toBe("2 elements keep running unchanged.");
});

test("of views alone nothing is said to be lost, and what has ended does not run", () => {
  const view = { ...change("chart", "removed"), view: true };
  expect(sectionText("removed", [view])).not.toContain("checkpoints");
  expect(sectionText("removed", [view, change("a", "removed")])).toContain("checkpoints");
  expect(nowWords("ended")).not.toContain("running");
});

test("an upgrade that failed can be tried again when nothing differs any more", () => {
  expect(toAgree({ changes: [change("a", "upgraded")], repeats: true })).toBe("changes");
  expect(toAgree({ changes: [change("a", "unchanged")], repeats: true })).toBe("again");
  expect(toAgree({ changes: [change("a", "unchanged")], repeats: false })).toBe("nothing");
});

test("one incompatible element refuses the deployment, and is named", () => {
  expect(deployRefusal([change("a", "upgraded")])).toBeNull();
  expect(deployRefusal([change("a", "incompatible")])).toContain("a cannot take over");
});

test("each element that loses its state has to be agreed to", () => {
  const changes = [change("window", "restart"), change("sums", "restart"), change("a", "upgraded")];
  expect(deployRefusal(changes)).toContain("window and sums may lose");
  expect(deployRefusal(changes, new Set(["window"]))).toContain("agree: sums may lose");
  expect(deployRefusal(changes, new Set(["window", "sums"]))).toBeNull();
  expect(deployRefusal(changes, new Set(["sums"]), (id) => `The ${id}`)).toContain(
    "agree: The window may lose",
  );
  expect(grouped(changes).map((each) => each.change)).toEqual(["restart", "upgraded"]);
});

test("a first deployment is refused for what no node can take, not for what a starting one will", () => {
  const starts = { ...change("a", "added"), problem: "edge-a does not answer", waits: true };
  const never = { ...change("b", "added"), problem: "edge-b is cordoned", waits: false };
  expect(isFirst([starts, never])).toBe(true);
  expect(isFirst([starts, change("c", "unchanged")])).toBe(false);
  expect(deployRefusal([starts])).toBeNull();
  expect(deployRefusal([starts, never])).toBe("No node can take b: the reason is above.");
});

test("why no node takes an element is a clause, whatever it is about", () => {
  expect(problemWords("is pinned to a, which does not answer")).toBe(
    "it is pinned to a, which does not answer",
  );
  expect(problemWords("no node can take it (a is cordoned)")).toBe("no node can take it (a is cordoned)");
});
