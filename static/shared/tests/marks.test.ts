import { describe, expect, test } from "vitest";
import { csvName, csvOf } from "../csv";
import { checkpointMark, eventMark, handoverMark, marksAt, marksIn, sortedMarks } from "../marks";
import type { LogEvent } from "../types";
import { handover, phase, T0 } from "./fixtures";

const event = (kind: string, severity: LogEvent["severity"], change: Partial<LogEvent> = {}): LogEvent => ({
  id: 1,
  detail: {},
  cause: null,
  at: new Date(T0).toISOString(),
  kind,
  severity,
  pipeline: "p",
  element: null,
  node: null,
  message: "It happened.",
  ...change,
});

describe("marks", () => {
  test("a handover is marked when the owner changed, with its pause", () => {
    const timeline = [phase("PREPARE", 0, 4), phase("WARM", 4, 9), phase("CUT", 9, 10)];
    const pause = { ms: 210, at_most: true, gap_ms: 250, waited_ms: null, usual_ms: 40 };
    expect(handoverMark(handover({ timeline, outcome: "done", pause }))).toEqual({
      t: T0 + 9000,
      kind: "handover",
      text: "Live migration from edge-a to edge-b: done, pause at most 210 ms",
    });
    expect(handoverMark(handover(), "Power").text).toMatch(/^Live migration of Power from edge-a to edge-b:/);
    expect(handoverMark(handover({ phase: "WARM", timeline: timeline.slice(0, 2) }))).toMatchObject({
      t: T0,
      text: "Live migration from edge-a to edge-b: catching up",
    });
  });

  test.each([
    ["pipeline.deployed", "info", "deployment"],
    ["pipeline.upgrade_failed", "error", "fault"],
    ["element.failed", "error", "fault"],
    ["element.dead_letters", "warning", "fault"],
    ["connector.failing", "warning", "fault"],
    ["node.silent", "error", "fault"],
  ] as const)("%s is marked as a %s: %s", (kind, severity, mark) => {
    expect(eventMark(event(kind, severity))).toEqual({ t: T0, kind: mark, text: "It happened." });
  });

  test.each([
    ["handover.failed", "warning"],
    ["node.up", "info"],
    ["standby.dropped", "warning"],
  ] as const)("%s is no mark", (kind, severity) => {
    expect(eventMark(event(kind, severity))).toBeNull();
    expect(eventMark({ ...event("node.silent", "error"), at: null })).toBeNull();
  });

  test("each is there once, oldest first", () => {
    const late = checkpointMark({ seq: 9, at: new Date(T0 + 5000).toISOString(), bytes: 2000 });
    const early = eventMark(event("node.silent", "error"));
    expect(sortedMarks([late, null, early, early])).toEqual([early, late]);
    expect(late?.text).toBe("Checkpoint at batch 9, 2.0 KB");
  });

  test("of a chart are those of its time", () => {
    const marks = [5, 10, 20, 21].map((t) => ({ t, kind: "fault" as const, text: "" }));
    expect(marksIn(marks, { from: 10, to: 20 }).map(({ t }) => t)).toEqual([10, 20]);
  });

  test("stand at the last figures before them", () => {
    const marks = [0, 12, 19, 35].map((t) => ({ t, kind: "fault" as const, text: `at ${t}` }));
    expect(marksAt([10, 20, 30], marks)).toEqual(["at 0; at 12; at 19", "", "at 35"]);
  });
});

describe("a chart's figures as CSV", () => {
  const marks = [{ t: T0, kind: "fault" as const, text: 'It said "no", twice' }];

  test("have a row for each time, with what happened", () => {
    const lines = [
      { name: "in", values: [9.5, null] },
      { name: "out", values: [0, -1] },
    ];
    expect(csvOf({ unit: "rows/s", times: [T0, T0 + 2000], lines, marks })).toBe(
      "time,in (rows/s),out (rows/s),events\r\n" +
        '2026-11-20T12:00:00.000Z,9.5,0,"It said ""no"", twice"\r\n' +
        "2026-11-20T12:00:02.000Z,,-1,\r\n",
    );
  });

  test("hold nothing that a spreadsheet would carry out", () => {
    const lines = [{ name: '=HYPERLINK("http://x")', values: [1] }];
    const text = csvOf({ unit: "", times: [T0], lines, marks: [{ ...marks[0]!, text: "+1" }] });
    expect(text).toContain(`"'=HYPERLINK(""http://x"")"`);
    expect(text).toContain(",1,'+1\r\n");
  });

  test("have a name that any system takes", () => {
    expect(csvName("watched positive", "Batch, p50")).toBe("watched-positive-batch-p50.csv");
  });
});
