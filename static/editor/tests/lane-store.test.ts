import { beforeEach, expect, test } from "vitest";
import { laneLayout } from "../lanes/layout";
import { choose, giveUpDrag, hang, keepLayout, letGo, useLanes, whenLaid } from "../lanes/store";

const UNITS = [{ lead: "power", members: ["power"] }];
const LAID = laneLayout([], [], []);

beforeEach(() => {
  letGo();
  keepLayout(null);
});

test("what needs the lanes waits until they are drawn, and then comes once", () => {
  const told: string[] = [];
  whenLaid(() => told.push("first"));
  keepLayout(null);
  expect(told).toEqual([]);
  keepLayout(LAID);
  keepLayout(LAID);
  expect(told).toEqual(["first"]);
  whenLaid(() => told.push("at once"));
  expect(told).toEqual(["first", "at once"]);
});

test("a drag is given up before its drop, and a move that is to be confirmed is not", () => {
  expect(giveUpDrag()).toBe(false);
  hang(UNITS, "node edge-b");
  expect(giveUpDrag()).toBe(true);
  expect(useLanes.getState().hanging).toBeNull();
  choose(UNITS, "node edge-b");
  expect(giveUpDrag()).toBe(false);
  expect(useLanes.getState().hanging?.stage).toBe("chosen");
});
