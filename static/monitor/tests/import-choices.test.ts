import { expect, test } from "vitest";
import type { ReadItem } from "../../shared/types";
import { asked, refusedBecause, toImport } from "../import-choices";

const item = (at: number, part: Partial<ReadItem> = {}): ReadItem => ({
  at,
  line: 1,
  name: `p${at}`,
  title: `P ${at}`,
  elements: 1,
  refused: null,
  missing: [],
  there: null,
  free_title: `P ${at} 2`,
  ...part,
});
const there = { title: "P", revision: 7, same: false };

test("what is here already is asked, and nothing is imported before", () => {
  const items = [item(0), item(1, { there }), item(2, { there })];
  const wishes = items.map(asked);
  expect(refusedBecause(items, wishes)).toBe("Choose what to do with P 1 and 1 more.");
  wishes[1]!.how = "replace";
  wishes[2]!.how = "rename";
  expect(refusedBecause(items, wishes)).toBeNull();
  expect(toImport(items, wishes)).toEqual([
    { at: 0, title: "", replaces: null },
    { at: 1, title: "", replaces: 7 },
    { at: 2, title: "P 2 2", replaces: null },
  ]);
  wishes[2]!.title = " ";
  expect(refusedBecause(items, wishes)).toBe("Enter a name for each new pipeline.");
});

test("what cannot be imported, or is the same, is left out", () => {
  const missing = [{ name: "a.csv", elements: ["e"], choices: [] }];
  const items = [
    item(0, { refused: "no" }),
    item(1, { missing }),
    item(2, { there: { ...there, same: true } }),
  ];
  const wishes = items.map(asked);
  expect(toImport(items, wishes)).toEqual([]);
  expect(refusedBecause(items, wishes)).toBe("There is nothing to import.");
});
