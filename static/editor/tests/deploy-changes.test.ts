import { expect, test } from "vitest";
import type { DeployChange } from "../../shared/types";
import { deployRefusal, grouped, toAgree, untouched } from "../deploy-changes";

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
  expect(untouched(changes)).toBe("2 elements go on untouched.");
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
