import { expect, test } from "vitest";
import { drainWords, hosted, leavingWords } from "../draining";
import { toTheSecond } from "../format";
import { element, node } from "./fixtures";

const elements = { machines: [element({ title: "Power per minute" })] };

test("a drain says how many of how many have gone, and what goes now", () => {
  const moving = { pipeline: "machines", element: "power", target: "edge-b" };
  expect(drainWords({ moved: 1, total: 3, moving }, elements)).toBe(
    "1 of 3 groups moved; Power per minute is moving to edge-b.",
  );
  expect(drainWords({ moved: 1, total: 1, moving: null }, elements)).toBe("1 of 1 group moved.");
  expect(drainWords({ moved: 0, total: 2, moving: { ...moving, element: "gone" } }, elements)).toContain(
    "gone is moving",
  );
  expect(drainWords({ moved: 0, total: 0, moving: null }, elements)).toBe("Nothing is left to move.");
});

test("a node that is leaving says what it still owns, and until when", () => {
  const at = "2026-11-25T14:03:10+00:00";
  const owns = (id: string, role: string) => ({
    pipeline: "machines",
    element: id,
    title: id,
    group: id,
    role,
  });
  const elements = [owns("a", "owner"), owns("b", "owner"), owns("c", "standby")];
  expect(leavingWords(node("edge-a", { leaving_until: at, elements }))).toBe(
    `leaving: 2 elements to move, until ${toTheSecond(Date.parse(at))}`,
  );
});

test("an element is never shown as stopped and running at once", () => {
  const moved = element({ node: "edge-b", status: "running" });
  expect(hosted("stopped", moved, "edge-a")).toEqual({
    role: "left behind",
    status: "stopped",
    word: "now runs on edge-b",
  });
  expect(hosted("owner", moved, "edge-b")).toEqual({ role: "owner", status: "running" });
  expect(hosted("standby", moved, "edge-a")).toMatchObject({ status: "standby", word: "follows" });
  const stopped = element({ node: "edge-a", status: "stopped" });
  expect(hosted("stopped", stopped, "edge-a")).toEqual({ role: "stopped", status: "stopped" });
  expect(hosted("owner", undefined, "edge-a").status).toBe("");
});
