import { expect, test } from "vitest";
import type { DeployChange } from "../../shared/types";
import { DOCUMENT } from "../../shared/tests/documents";
import { newIds, withNewIds } from "../new-ids";

const refused = (element: string, instead: string | null): DeployChange => ({
  element,
  change: "incompatible",
  instead,
});

test("only what is offered another id gets one, and no two the same", () => {
  const changes = [refused("readings", "a-2"), refused("unknown", "b-2"), refused("file", "a-2")];
  expect([...newIds(DOCUMENT, changes)]).toEqual([["readings", "a-2"]]);
  expect(newIds(DOCUMENT, [refused("readings", null)]).size).toBe(0);
});

test("tiles of this pipeline follow, in all their parts, and those of others stay", () => {
  const tiles = [
    { kind: "table", pipeline: "p", element: "alarm" },
    {
      kind: "chart",
      series: [
        { pipeline: "p", element: "alarm" },
        { pipeline: "q", element: "alarm" },
      ],
    },
    { kind: "text", text: "alarm" },
  ];
  expect(withNewIds(tiles, "p", new Map([["alarm", "alarm-2"]]))).toEqual([
    { kind: "table", pipeline: "p", element: "alarm-2" },
    {
      kind: "chart",
      series: [
        { pipeline: "p", element: "alarm-2" },
        { pipeline: "q", element: "alarm" },
      ],
    },
    { kind: "text", text: "alarm" },
  ]);
});
