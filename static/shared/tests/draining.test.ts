import { expect, test } from "vitest";
import { drainWords, hosted } from "../draining";
import { element } from "./fixtures";

const elements = { machines: [element({ title: "Power per minute" })] };

test("a drain says how many of how many have gone, and what goes now", () => {
  const moving = { pipeline: "machines", element: "power", target: "edge-b" };
  expect(drainWords({ moved: 1, total: 3, moving }, elements)).toBe(
    "1 of 3 groups moved; Power per minute goes to edge-b now.",
  );
  expect(drainWords({ moved: 1, total: 1, moving: null }, elements)).toBe("1 of 1 group moved.");
  expect(drainWords({ moved: 0, total: 2, moving: { ...moving, element: "gone" } }, elements)).toContain(
    "gone goes",
  );
  expect(drainWords({ moved: 0, total: 0, moving: null }, elements)).toBe("Nothing is left to move.");
});

test("an element is never shown as stopped and running at once", () => {
  const moved = element({ node: "edge-b", status: "running" });
  expect(hosted("stopped", moved, "edge-a")).toEqual({
    role: "left behind",
    status: "stopped",
    word: "runs on edge-b now",
  });
  expect(hosted("owner", moved, "edge-b")).toEqual({ role: "owner", status: "running" });
  expect(hosted("standby", moved, "edge-a")).toMatchObject({ status: "standby", word: "follows" });
  const stopped = element({ node: "edge-a", status: "stopped" });
  expect(hosted("stopped", stopped, "edge-a")).toEqual({ role: "stopped", status: "stopped" });
  expect(hosted("owner", undefined, "edge-a").status).toBe("");
});
