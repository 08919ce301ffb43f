import { expect, test } from "vitest";
import { element } from "../../shared/tests/fixtures";
import type { AuditEntry, PipelineItem } from "../../shared/types";
import { actionWords, pipelineOf } from "../audit-words";
import { enters } from "../../shared/points";
import { ordered } from "../overview-order";

const pipeline = (
  name: string,
  status: PipelineItem["status"],
  deployed_version: number | null,
  day = 1,
) => ({
  name,
  status,
  deployed_version,
  updated_at: `2026-11-0${day}T00:00:00Z`,
});

test("trouble comes first, then what runs, what is deployed without running, then the newest drafts", () => {
  const { trouble, running, resting, drafts } = ordered([
    pipeline("a-draft", "draft", null, 1),
    pipeline("b-draft", "draft", null, 2),
    pipeline("c-runs", "running", 1),
    pipeline("d-lags", "attention", 2),
    pipeline("e-failed", "failed", 1),
    pipeline("b-paused", "paused", 1),
    pipeline("f-ended", "ended", 1),
    pipeline("a-deploying", "deploying", 1),
  ]);
  expect(trouble.map((each) => each.name)).toEqual(["d-lags", "e-failed"]);
  expect(running.map((each) => each.name)).toEqual(["c-runs"]);
  expect(resting.map((each) => each.name)).toEqual(["a-deploying", "b-paused", "f-ended"]);
  expect(drafts.map((each) => each.name)).toEqual(["b-draft", "a-draft"]);
});

test("what enters a pipeline is what its sources give, unknown while none of them is heard", () => {
  const elements = [
    element({ id: "in", rows_out_per_s: 5 }),
    element({ id: "two", rows_out_per_s: 2.5 }),
    element({ id: "sink", rows_out_per_s: 100 }),
  ];
  expect(enters(elements, ["in", "two"])).toBe(7.5);
  expect(enters([element({ id: "in" })], ["in"])).toBeNull();
  expect(enters([element({ id: "in", rows_in_per_s: 3 })], ["in"])).toBe(3);
});

function entry(action: string, detail: unknown, change: Partial<AuditEntry> = {}): AuditEntry {
  return { id: 1, at: "", since: "", times: 1, user: "ada", action, target: "p", detail, ...change };
}

test("what somebody did is told in words, an unknown action by its name", () => {
  expect(actionWords(entry("pipeline.save", { revision: 17 }, { times: 15 }))).toBe(
    "changed the draft (15 saves)",
  );
  expect(actionWords(entry("pipeline.deploy", { version: 3, deployment: "hu3dme4l6y" }))).toBe(
    "deployed version 3",
  );
  const moved = { origin: "edge-a", to: "edge-b", strategy: "standby", reason: "drain of edge-a" };
  expect(actionWords(entry("element.migrate", moved))).toBe(
    "moved it from edge-a to edge-b with a standby (drain of edge-a)",
  );
  expect(actionWords(entry("something.new", null))).toBe("something.new");
});

test("an entry leads to its pipeline and element, unless it is about something else", () => {
  expect(pipelineOf(entry("element.pause", {}, { target: "p/x" }))).toEqual({ pipeline: "p", element: "x" });
  expect(pipelineOf(entry("pipeline.save", {}))).toEqual({ pipeline: "p", element: "" });
  expect(pipelineOf(entry("node.drain", {}, { target: "edge-a" }))).toBeNull();
});
