import { afterEach, expect, test } from "vitest";
import { removalRefusal, removalText } from "../actions";
import { page } from "../page";
import { node } from "./fixtures";

const role = page.user.role;
afterEach(() => void (page.user.role = role));

test("only an admin removes a node, and only one that the server would let go", () => {
  page.user.role = "operator";
  expect(removalRefusal(node("edge-c"))).toContain("needs admin");
  page.user.role = "admin";
  expect(removalRefusal(node("edge-c"))).toBeNull();
  const needed = node("edge-c", { remove: { allowed: false, reason: "it is to run p/power", note: null } });
  expect(removalRefusal(needed)).toBe("It is to run p/power.");
});

test("the confirmation says what follows, and that the machine still knows the cluster's key", () => {
  const silent = removalText(node("edge-c", { up: false }));
  expect(silent).toContain("does not lock the machine out");
  expect(silent).toContain("FOGLINE_CLUSTER_KEY");
  expect(silent).not.toContain("It still runs");
  expect(removalText(node("edge-c", { up: false, heard: false }))).toContain("It may still run");
  const silentBefore = node("edge-c", { up: false, heard: false, silent_at: "2026-11-20T12:00:00Z" });
  expect(removalText(silentBefore)).not.toContain("may still run");
  const running = removalText(
    node("edge-c", {
      elements: [{ pipeline: "p", element: "power", title: "Power", group: "power", role: "standby" }],
    }),
  );
  expect(running).toContain("stop it there, too");
  expect(running).toContain("lose their standby: Power");
});
