import { expect, test } from "vitest";
import {
  adviceOf,
  doneWords,
  dryActWords,
  dryRunSentences,
  notable,
  policySentence,
  sitesNow,
} from "../policies";
import { ruleOf, typedOf } from "../policy-rules";
import type { DryRun, Standing } from "../types";

const cpu = { kind: "cpu", threshold: 0.8, for_s: 60 } as const;
const busy = { rule: cpu, moves_per_hour: 6, mode: "automatic" } as const;

test("a policy is one sentence", () => {
  expect(policySentence(busy)).toBe(
    "When a node's CPU has been above 80 % for 60 s, its busiest element that fits on another node is moved, at most 6 an hour.",
  );
  expect(policySentence({ ...busy, mode: "advice" })).toBe(
    "When a node's CPU has been above 80 % for 60 s, you are advised to move its busiest element that fits on another node.",
  );
  const rule = { kind: "battery", threshold: 0.2, for_s: 0 } as const;
  const battery = { ...busy, rule, moves_per_hour: 60 } as const;
  expect(policySentence(battery)).toBe(
    "When a node runs on a battery that has been below 20 %, everything that it runs, the element with the least state first, is moved, at most 60 an hour.",
  );
  expect(policySentence({ ...battery, mode: "advice" })).toContain("the element with the least state first.");
});

test("of sites it is two sentences: of one that comes, and of one that goes", () => {
  const rule = { kind: "sites", pipeline: "", for_s: 120, gone: "wait", gone_s: 600 } as const;
  expect(policySentence({ ...busy, rule })).toBe(
    "When a site has been there for 120 s, each pipeline whose elements are copied to each site gets its copy there, at most 6 upgrades an hour. When no node of a site has answered for 600 s, its copies wait for it and are not restored elsewhere.",
  );
  expect(
    policySentence({ ...busy, mode: "advice", rule: { ...rule, pipeline: "power", gone: "elsewhere" } }),
  ).toBe(
    "When a site has been there for 120 s, you are advised to give power its copy there. When no node of a site has answered for 600 s, you are advised to restore its copies on other nodes.",
  );
  expect(policySentence({ ...busy, rule: { ...rule, gone: "take-out" } })).toContain(
    "its copies are taken out of the pipeline, with the state that they keep; until then they wait for it.",
  );
  expect(typedOf(rule)).toEqual({ pipeline: "", for_s: "120", gone_s: "600", gone: "wait" });
  expect(ruleOf("sites", typedOf(rule))).toEqual({ rule, faults: {} });
});

test("what it advises is one click, and what it has done is a link", () => {
  const yard = { ...said("copy"), node: "", site: "Yard", pipeline: "power" };
  expect(adviceOf(yard)).toEqual({ pipeline: "power", site: "Yard", change: "copy" });
  expect(adviceOf({ ...yard, code: "waits" })).toEqual({});
  expect(adviceOf({ ...said("restore"), pipeline: "power", element: "big", target: "edge-a" })).toEqual({
    pipeline: "power",
    element: "big",
    restore_to: "edge-a",
  });
  const line = { ...yard, id: 1, at: "", policy: "plants", handover: null, operation: "1" };
  expect(doneWords(line)).toBe("got its copies");
  expect(doneWords({ ...line, operation: null, code: "resting" })).toBe("resting after a move");
  expect(sitesNow([yard])).toBe("Every site has its copies of power.");
  expect(sitesNow([])).toContain("No running pipeline");
});

const said = (code: Standing["code"]): Standing => ({
  node: "edge-a",
  code,
  why: "",
  since: "",
  group: null,
  pipeline: null,
  element: null,
  title: null,
  target: null,
});

test("of calm nodes nothing is told, and what is to be moved comes first", () => {
  const codes = notable([said("calm"), said("not-yet"), said("unknown"), said("move")]).map((s) => s.code);
  expect(codes).toEqual(["move", "not-yet"]);
});

const act: DryRun["acts"][number] = {
  at: "",
  code: "move",
  pipeline: "p",
  element: "e",
  title: "e of p",
  origin: "a",
  target: "b",
  site: null,
  why: "",
};

test("what a dry run would have done is said in words", () => {
  const copies = { ...act, element: null, title: null, origin: "", target: null, site: "Yard" };
  expect(dryActWords(act)).toBe("e of p from a to b");
  expect(dryActWords({ ...act, code: "restore", site: "Yard" })).toBe("e of p continues on b");
  expect(dryActWords({ ...copies, code: "copy" })).toBe("p gets its copies at Yard");
  expect(dryActWords({ ...copies, code: "take-out" })).toBe("p loses its copies at Yard");
  expect(dryActWords({ ...copies, code: "restore", target: "b" })).toBe("a copy of p at Yard continues on b");
});

test("a dry run says how long it looked back, and what was in the way", () => {
  const run = { since: "2026-11-25T10:00:00Z", until: "2026-11-25T12:30:00Z", acts: [], held: [] };
  expect(dryRunSentences(run)).toEqual(["In the last 2.5 h it would have done nothing."]);
  expect(dryRunSentences({ ...run, held: [{ code: "no-target", seconds: 90 }] })[1]).toBe(
    "Reasons why it did not act: no node can take it (2 min).",
  );
  expect(dryRunSentences({ ...run, until: "2026-11-25T10:10:00Z", acts: [act] })[0]).toContain(
    "In the last 10 min it would have acted once if",
  );
  expect(dryRunSentences({ ...run, acts: [act, act] })[0]).toContain("acted 2 times if");
  expect(dryRunSentences({ ...run, since: null, until: null })[0]).toContain("Nothing has been measured");
});

test("what is typed is checked as the server does", () => {
  expect(ruleOf("cpu", { threshold: "80", for_s: "60" })).toEqual({ rule: cpu, faults: {} });
  expect(typedOf(cpu)).toEqual({ threshold: "80", for_s: "60" });
  expect(ruleOf("cpu", { threshold: "5", for_s: "5" })).toEqual({
    rule: null,
    faults: {
      threshold: "Enter a number between 20 and 99 %.",
      for_s: "Enter a number between 30 and 1800 s.",
    },
  });
  expect(ruleOf("battery", { threshold: "5", for_s: "0" }).faults).toEqual({});
  expect(ruleOf("battery", { threshold: " ", for_s: "0.5" }).faults).toEqual({
    threshold: "Enter a number between 1 and 90 %.",
    for_s: "Enter a whole number.",
  });
});

const window = {
  kind: "maintenance",
  of: "node",
  name: "edge-a",
  begins: "2026-11-26T02:00:00Z",
  minutes: 120,
  weekly: false,
  lead_minutes: 30,
} as const;

test("a window says when it is, in UTC, and that nothing new comes", () => {
  expect(policySentence({ rule: window, moves_per_hour: 60, mode: "automatic" })).toBe(
    "30 min before edge-a must be empty (2026-11-26 02:00 to 04:00 UTC), everything that it runs, the element with the least state first, is moved, at most 60 an hour. From then until the end of the maintenance, no new elements are placed there.",
  );
  const weekly = { ...window, of: "site", weekly: true, minutes: 1440 } as const;
  expect(policySentence({ rule: weekly, moves_per_hour: 60, mode: "advice" })).toContain(
    "each node at edge-a must be empty (each Thursday 02:00 to Friday 02:00 UTC), you are advised",
  );
});

test("a window is typed in UTC", () => {
  const typed = typedOf(window);
  expect(typed).toMatchObject({ begins: "2026-11-26 02:00", weekly: "no", of: "node" });
  expect(ruleOf("maintenance", typed)).toEqual({
    rule: { ...window, begins: "2026-11-26T02:00:00.000Z" },
    faults: {},
  });
  expect(ruleOf("maintenance", { ...typed, name: " ", begins: "tomorrow", minutes: "0" }).faults).toEqual({
    name: "Enter a name.",
    begins: "Enter a day and a time, such as 2026-11-26 02:00.",
    minutes: "Enter a number between 1 and 10080 min.",
  });
});

const late = { kind: "latency", pipeline: "p", element: "", ms: 500, for_s: 60 } as const;

test("a budget of latency says where an element goes", () => {
  const figures = { rule: late, moves_per_hour: 6, mode: "automatic" } as const;
  expect(policySentence(figures)).toBe(
    "When the slowest 5 % of the batches of an element of p have taken more than 500 ms for 60 s, it is moved to a node that is nearer to its inputs, or as near and less busy, at most 6 an hour.",
  );
  expect(policySentence({ ...figures, mode: "advice" })).toContain("you are advised to move it to a node");
  expect(ruleOf("latency", typedOf(late))).toEqual({ rule: late, faults: {} });
});

test("what spreads and what packs say what they do", () => {
  const figures = { moves_per_hour: 6, mode: "automatic" } as const;
  const spread = { kind: "spread", difference: 0.4, for_s: 300 } as const;
  expect(policySentence({ ...figures, rule: spread })).toBe(
    "When a node's CPU has been more than 40 points above that of the least busy one for 300 s, its busiest element that fits there is moved, at most 6 an hour.",
  );
  expect(ruleOf("spread", typedOf(spread))).toEqual({ rule: spread, faults: {} });
  expect(policySentence({ ...figures, rule: { kind: "pack", threshold: 0.8, for_s: 600 } })).toBe(
    "When everything on the least busy node has fitted on busier nodes for 600 s, whose CPU stays under 70 %, it is moved there, one element after another, at most 6 an hour.",
  );
});

const stands = { moves_per_hour: 6, mode: "automatic" } as const;

test("what keeps a pipeline apart says how many a node runs", () => {
  const rule = { kind: "apart", pipeline: "p", most: null } as const;
  expect(policySentence({ ...stands, rule })).toBe(
    "When a node runs more than half (rounded up) of the groups of p, the group with the least state is moved to the node that runs the fewest, at most 6 an hour.",
  );
  expect(policySentence({ ...stands, rule: { ...rule, most: 2 } })).toContain(
    "more than 2 of the groups of p,",
  );
  expect(ruleOf("apart", typedOf(rule))).toEqual({ rule, faults: {} });
  expect(ruleOf("apart", { pipeline: "p", most: "2" }).rule).toEqual({ ...rule, most: 2 });
  expect(ruleOf("apart", { pipeline: "", most: "0" }).faults).toEqual({
    pipeline: "Enter a name.",
    most: "Enter a number between 1 and 100.",
  });
});

test("what follows a user says whom, and what goes along", () => {
  const rule = { kind: "follow", pipeline: "p", element: "phone", along: false, for_s: 60 } as const;
  expect(policySentence({ ...stands, rule })).toBe(
    "When the user of phone of p has been at a site for 60 s, it is moved to the node that is nearest to that site, if it is more than 10 ms nearer, at most 6 an hour.",
  );
  const along = { ...rule, along: true, for_s: 0 };
  expect(policySentence({ rule: along, moves_per_hour: 6, mode: "advice" })).toBe(
    "When the user of phone of p has come to a site, you are advised to move it (with the elements that read only from it, unless they are pinned) to the node that is nearest to that site, if it is more than 10 ms nearer.",
  );
  expect(ruleOf("follow", typedOf(along))).toEqual({ rule: along, faults: {} });
  expect(ruleOf("follow", { ...typedOf(rule), element: "" }).faults).toEqual({ element: "Enter a name." });
});
