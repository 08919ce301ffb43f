import { expect, test } from "vitest";
import type { ExpectedCheck, PinnedRows } from "../../shared/types";
import {
  checkWords,
  differenceWords,
  differs as mustAgree,
  fewLines,
  letterWords,
  pinnedWords,
} from "../preview/pinned-words";

const differs = {
  place: 3,
  kind: "differs" as const,
  cells: [
    { name: "most", expected: 3, found: 4 },
    { name: "unit", expected: null, found: "W" },
  ],
};

test("a difference names the row, the column and both values", () => {
  expect(differenceWords(differs)).toBe("Row 3: most is 4, expected 3; unit is W, expected no value.");
  expect(differenceWords({ place: 5, kind: "missing", cells: [] })).toBe("Row 5 is missing.");
  expect(differenceWords({ place: 6, kind: "unexpected", cells: [] })).toBe("Row 6 is not expected.");
});

test("of many differences the first are said, and how many more there are", () => {
  const lines = Array.from({ length: 9 }, (_, place) => `Row ${place}`);
  expect(fewLines(lines)).toEqual([...lines.slice(0, 5), "4 more differ."]);
  expect(fewLines(lines.slice(0, 6))).toEqual(lines.slice(0, 6));
});

const check: ExpectedCheck = {
  element: "power",
  title: "Power",
  columns: [],
  differences: [differs],
  letters_expected: 0,
  letters_found: 2,
  trouble: null,
};

test("dead letters count, too", () => {
  expect(letterWords(0, 0)).toBeNull();
  expect(letterWords(null, 4)).toBeNull();
  expect(letterWords(0, 1)).toBe("1 dead letter, expected 0.");
  expect(checkWords(check)).toHaveLength(2);
});

test("pinned rows say whether they give what is expected", () => {
  const pinned: PinnedRows = {
    rows: 12,
    at: "2026-11-28T16:00:00Z",
    by: "ada",
    expects: false,
    differences: [],
    letters_expected: null,
  };
  expect(pinnedWords(pinned, 0)).toBe("12 pinned rows by ada. Nothing is expected of them yet.");
  const expected = { ...pinned, expects: true, letters_expected: 0 };
  expect(pinnedWords(expected, 0)).toBe("12 pinned rows by ada. The rows are as expected.");
  expect(pinnedWords(expected, 1)).toContain("differ");
});

test("a deployment waits for the check; then a person agrees to what differs or was not checked", () => {
  const told = (checks: ExpectedCheck[] | undefined, error?: unknown) => mustAgree({ checks, error });
  const right = { ...check, differences: [], letters_found: 0 };
  expect(told(undefined)).toBeNull();
  expect(told([])).toBe(false);
  expect(told([right])).toBe(false);
  expect(told([right, check])).toBe(true);
  expect(told([{ ...right, trouble: "No node answers." }])).toBe(true);
  expect(told(undefined, new Error("gone"))).toBe(true);
});
