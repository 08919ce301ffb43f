import { expect, test } from "vitest";
import type { Alarm, AlarmChannel, AlarmMetric } from "../../shared/types";
import { newAlarms } from "../../shared/new-alarms";
import { onCallFault, spanWords, withoutUnseenZone } from "../alarms/on-call-words";
import { matches, routeSentence, ruleSentence, valuesWords } from "../alarms/words";

const alarm = (change: Partial<Alarm> = {}): Alarm => ({
  id: 1,
  status: "raised",
  severity: "warning",
  title: "Hot of Hall",
  message: "Hot of Hall, m1: t 81.5",
  source: "rows",
  rule: null,
  pipeline: "hall",
  element: "hot",
  node: "edge-a",
  site: null,
  key: "m1",
  values: {},
  row: null,
  count: 1,
  raised_at: "2026-11-29T12:00:00Z",
  seen_at: "2026-11-29T12:00:00Z",
  cleared_at: null,
  acknowledged_at: null,
  acknowledged_by: null,
  silenced_until: null,
  silenced_by: null,
  note: "",
  ...change,
});

test("a filter looks at words, severity, pipeline and state together", () => {
  const all = { words: "", severity: "", pipeline: "", status: "" };
  expect(matches(alarm(), all)).toBe(true);
  expect(matches(alarm(), { ...all, words: " M1 " })).toBe(true);
  expect(matches(alarm(), { ...all, words: "edge-a", severity: "warning", pipeline: "hall" })).toBe(true);
  expect(matches(alarm(), { ...all, words: "m2" })).toBe(false);
  expect(matches(alarm(), { ...all, severity: "critical" })).toBe(false);
  expect(matches(alarm(), { ...all, pipeline: "other" })).toBe(false);
  expect(matches(alarm(), { ...all, status: "silenced" })).toBe(false);
});

test("the browser tells of an alarm once, and only of one that nobody knows of", () => {
  const now = [alarm(), alarm({ id: 2 }), alarm({ id: 3, status: "acknowledged" })];
  const first = newAlarms(newAlarms([], [alarm()]).known, now);
  expect(first.found.map(({ id }) => id)).toEqual([2]);
  const again = newAlarms(first.known, now);
  expect(again.found).toEqual([]);
  // a tab that is behind makes no other tab tell again
  const behind = newAlarms(again.known, [alarm()]);
  expect(newAlarms(behind.known, now).found).toEqual([]);
});

test("the browser tells once more of an alarm that gets worse, and of one whose silence ends", () => {
  const { known } = newAlarms([], [alarm(), alarm({ id: 2, status: "silenced" })]);
  const { found } = newAlarms(known, [alarm({ severity: "critical" }), alarm({ id: 2 })]);
  expect(found.map(({ id }) => id)).toEqual([1, 2]);
});

test("an alarm of a new database is told of, though a former one had its id", () => {
  const { known } = newAlarms([], [alarm()]);
  expect(newAlarms(known, [alarm({ raised_at: "2026-11-30T12:00:00Z" })]).found).toHaveLength(1);
});

test("the time zone of a route that always tells is not sent", () => {
  const spec = { channels: [1], zone: "Mars" };
  expect(withoutUnseenZone(spec)).toEqual({ channels: [1] });
  expect(withoutUnseenZone({ ...spec, on_call: [] })).toEqual({ channels: [1], on_call: [] });
  const timed = { ...spec, on_call: [{ days: [1] }] };
  expect(withoutUnseenZone(timed)).toEqual(timed);
});

test("what a browser remembers of alarms is bounded, and what is open is never forgotten", () => {
  let known: string[] = [];
  for (let id = 2; id < 5000; id += 100) {
    const raised = Array.from({ length: 100 }, (_, n) => alarm({ id: id + n }));
    const next = newAlarms(known, [alarm(), ...raised]);
    expect(next.found.length).toBe(id === 2 ? 101 : 100);
    known = next.known;
  }
  expect(known.length).toBeLessThan(1200);
});

test("values are as long as people read them", () => {
  expect(valuesWords({ t: 81.512345678, machine: "m1", none: null })).toBe(
    "t 81.5123, machine m1, none null",
  );
});

test("a rule says when it raises an alarm, and when it clears it", () => {
  const metrics: AlarmMetric[] = [
    { metric: "lag_rows", title: "rows wait", unit: "rows", of: "element", below: false, flag: false },
    { metric: "node_silent", title: "does not answer", unit: "", of: "node", below: false, flag: true },
    {
      metric: "connector_failing",
      title: "connector fails",
      unit: "",
      of: "element",
      below: false,
      flag: true,
    },
  ];
  expect(ruleSentence({ metric: "lag_rows", raise_at: 100, clear_at: 50, for_s: 120 }, metrics)).toBe(
    "A warning alarm when more than 100 rows wait for an element, for 2 minutes. It is cleared at 50 rows.",
  );
  expect(ruleSentence({ metric: "node_silent", severity: "critical", node: "edge-b" }, metrics)).toBe(
    "A critical alarm when edge-b does not answer.",
  );
  expect(ruleSentence({ metric: "connector_failing", pipeline: "hall", for_s: 10 }, metrics)).toBe(
    "A warning alarm when the connector of an element of hall fails, for 10 seconds.",
  );
});

test("a time says its days and hours, also over midnight, and what is wrong with it", () => {
  const span = { days: [0, 1, 2, 4], begins: "22:00", ends: "06:00" };
  expect(spanWords(span)).toBe("Mon to Wed, Fri 22:00 to 06:00 of the next day");
  expect(spanWords({ days: [6, 5] })).toBe("Sat, Sun all day");
  expect(spanWords({ days: [0, 1, 2, 3, 4, 5, 6], begins: "06:00", ends: "06:00" })).toBe(
    "every day 06:00 to 06:00 of the next day",
  );
  expect(onCallFault([span, { ...span, days: [] }], "UTC")).toBe("Choose a day.");
  expect(onCallFault([{ ...span, ends: "24:00" }], "UTC")).toBe("Write times such as 08:00 or 17:30.");
  expect(onCallFault([span], "Mars/Olympus")).toBe("Write a time zone such as Europe/Vienna.");
  expect(onCallFault([span], "Europe/Vienna")).toBeNull();
  expect(onCallFault([], "")).toBeNull();
});

test("a route says who is told, when, and who else", () => {
  const channels = [
    { id: 1, name: "mail" },
    { id: 2, name: "shift lead" },
  ] as AlarmChannel[];
  const hours = [
    { days: [0, 1, 2, 3, 4], begins: "08:00", ends: "16:00" },
    { days: [5], begins: "10:00", ends: "12:00" },
  ];
  expect(
    routeSentence(
      {
        channels: [1],
        severity: "critical",
        sites: ["hall"],
        on_call: hours,
        zone: "Europe/Vienna",
        repeat_min: 30,
        escalate_min: 10,
        escalate_to: [2],
      },
      channels,
    ),
  ).toBe(
    "Critical alarms at hall go to mail. It sends messages Mon to Fri 08:00 to 16:00; Sat 10:00 to 12:00 (Europe/Vienna)." +
      " Repeated every 30 minutes until somebody acknowledges." +
      " If nobody acknowledges for 10 minutes, they go to shift lead, too.",
  );
});
