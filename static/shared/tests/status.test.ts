import { expect, test } from "vitest";
import { drainRefusal, isDeployed, isRunning, nodeStatus, toneOf } from "../status";
import { element, node } from "./fixtures";

test("a node that is drained shows it, and that its drain waits, until it is empty", () => {
  const draining = node("edge-a", { cordoned: true, draining: true });
  expect(nodeStatus(draining)).toBe("draining");
  expect(toneOf(nodeStatus(draining))).toBe("moving");
  const waits = { ...draining, drain_blocked: "power: no node can take it." };
  expect(nodeStatus(waits)).toBe("drain is waiting");
  expect(toneOf(nodeStatus(waits))).toBe("lagging");
  expect(nodeStatus({ ...waits, up: false })).toBe("silent");
  expect(nodeStatus({ ...draining, draining: false })).toBe("cordoned");
  const leaving = { ...draining, leaving_until: "2026-11-25T14:03:10+00:00" };
  expect([nodeStatus(leaving), toneOf("leaving")]).toEqual(["leaving", "moving"]);
  expect(drainRefusal(leaving)).toContain("The node is leaving");
});

test("a deployment that failed is shown, but there is nothing to undeploy", () => {
  expect(isDeployed({ deployment: "d1", status: "attention" })).toBe(true);
  expect(isDeployed({ deployment: "d1", status: "undeploying" })).toBe(true);
  expect(isDeployed({ deployment: "d1", status: "failed" })).toBe(false);
  expect(isDeployed({ deployment: null, status: "draft" })).toBe(false);
  expect(isDeployed(null)).toBe(false);
});

test("a drain can be ordered again only when it waits", () => {
  const elements = [{ pipeline: "p", element: "power", title: "Power", group: "power", role: "owner" }];
  const draining = node("edge-a", { cordoned: true, draining: true, elements });
  expect(drainRefusal(draining)).toBe("The node is already being drained");
  expect(drainRefusal({ ...draining, drain_blocked: "power: no node can take it." })).toBeNull();
  expect(drainRefusal({ ...draining, draining: false })).toBeNull();
  expect(drainRefusal({ ...draining, draining: false, elements: [] })).toBe("Nothing runs here");
  const stuck = { ...draining, elements: [], drain_blocked: "power: it failed; drain edge-a again." };
  expect(drainRefusal(stuck)).toBeNull();
});

test("a pipeline with an element that does not process is not counted as running", () => {
  const lagging = [element({ status: "lagging" }), element()];
  expect(isRunning({ status: "attention" }, lagging)).toBe(true);
  expect(isRunning({ status: "attention" }, [...lagging, element({ status: "starting" })])).toBe(false);
  expect(isRunning({ status: "running" }, [element()])).toBe(true);
  expect(isRunning({ status: "paused" }, [element({ status: "paused" })])).toBe(false);
});
