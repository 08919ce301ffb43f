import { expect, test } from "vitest";
import type { Report } from "../types";
import {
  arrayWords,
  isLongJump,
  jumpWords,
  leftMs,
  missingOf,
  missingText,
  patternWords,
  placeOf,
  placesOf,
  placesText,
  reportWords,
  spanWords,
  TIME_FORMATS,
  unreadWords,
  usersOf,
} from "../words";
import { QUESTION } from "./fixtures";

const REPORT: Report = {
  rows: 9000,
  dead: 1,
  first_dead: [12, "x"],
  columns: [
    { name: "time", read: 9000, missing: 0, unreadable: 0, first_unreadable: null },
    { name: "power", read: 8997, missing: 0, unreadable: 3, first_unreadable: [6001, "n/a"] },
  ],
  begins: "2024-05-01T00:00:00Z",
  ends: "2024-05-02T00:00:00+00:00",
  usual_interval_s: 10,
  largest_jump: null,
  skipped: 0,
  footer: 2,
  with_decimals: [],
  questions: [],
};

test("texts for no value are written and read as one line", () => {
  expect(missingText(["", "-", "NaN", "no data"])).toBe("empty, -, NaN, no data");
  expect(missingOf(" empty, -, NaN ,no data, -")).toEqual(["", "-", "NaN", "no data"]);
  expect(missingOf("")).toEqual([]);
});

test("places in a line are read in their order, and once", () => {
  expect(placesOf("16, 8;8 24.")).toEqual([8, 16, 24]);
  expect(placesText(placesOf("16, 8"))).toBe("8, 16");
  expect(placesOf("no number, 0")).toEqual([]);
});

test("the place of an array is told in words", () => {
  expect(["", "data.rows", "data.*"].map(arrayWords)).toEqual([
    "the document itself",
    "data.rows",
    "data, an array for each column",
  ]);
});

test("a span is told in the unit that fits", () => {
  expect([0.01, 1, 90, 600, 7200, 86_400 * 3, 86_400 * 365.25 * 54, -30].map(spanWords)).toEqual([
    "10 ms",
    "1 s",
    "90 s",
    "10 min",
    "2 h",
    "3 days",
    "54 years",
    "30 s",
  ]);
});

test("the largest jump is told with its place", () => {
  const jump = {
    line: 3,
    before: "1970-01-01T00:00:00Z",
    after: "2024-05-01T00:00:00Z",
    seconds: 1_714_521_600,
  };
  expect(jumpWords(jump)).toBe(
    "At line 3, the time jumps by 54 years: from 1 Jan 1970, 00:00:00 UTC to 1 May 2024, 00:00:00 UTC.",
  );
  expect(isLongJump(jump, 1)).toBe(true);
  expect(isLongJump({ ...jump, seconds: 1800 }, 1)).toBe(false);
  expect(isLongJump({ ...jump, seconds: 86_400 }, 86_400)).toBe(false);
  expect(isLongJump({ ...jump, seconds: -5 }, 1)).toBe(true);
  expect(isLongJump(null, 1)).toBe(false);
});

test("a report says rows, span, and what could not be read", () => {
  expect(reportWords(REPORT)).toEqual([
    "9,000 rows, 2 columns.",
    "From 1 May 2024, 00:00:00 UTC to 2 May 2024, 00:00:00 UTC, mostly 10 s apart.",
    "At its recorded pace it plays for 24 h.",
    "3 cells could not be read and have no value.",
    "1 row has no time that can be read, or is cut off. It goes to the dead letters, and the columns do not count it.",
    "2 rows after the table were left out.",
  ]);
  expect(reportWords({ ...REPORT, skipped: 1 })).toContain("1 row was left out, since its time jumped.");
});

test("who uses a file, and where a question is", () => {
  expect(
    usersOf([
      { pipeline: "a", where: "deployment", version: 3 },
      { pipeline: "a", where: "draft", version: null },
      { pipeline: "b", where: "version", version: 2 },
    ]),
  ).toBe("a (deployed), a (draft), b (version 2)");
  const asked = { ...QUESTION, text: "What is this?" };
  expect(placeOf(asked)).toBe("Line 3, column flow");
  expect(placeOf({ ...asked, line: null })).toBe("Column flow");
  expect(placeOf({ ...asked, text: "1 cell of flow is not a number, first in line 3" })).toBe("");
});

test("the time that is left goes by the pace so far", () => {
  expect(leftMs(25, 100, 5000)).toBe(15_000);
  expect([leftMs(0, 100, 5000), leftMs(100, 100, 5000), leftMs(1, 100, 500)]).toEqual([null, null, null]);
});

test("a pattern of times is shown as people write one", () => {
  expect(patternWords("%d/%m/%Y %H:%M:%S milliseconds")).toBe("DD/MM/YYYY hh:mm:ss milliseconds");
  expect(patternWords("%Y-%j")).toBe("YYYY-day of the year");
  expect(patternWords("{range} %d.%m.%Y %H:%M")).toBe("start of a range, DD.MM.YYYY hh:mm");
  expect(patternWords("{above} %H:%M:%S | %H:%M")).toBe("date above the table, hh:mm:ss or hh:mm");
  expect(patternWords("{2024-05-01 10:20:30} seconds")).toBe("seconds since 2024-05-01 10:20:30");
});

test.each([
  "filetime",
  "ntp_s",
  "dotnet_ticks",
  "julian_days",
  "modified_julian_days",
  "excel_days",
  "excel_days_1904",
])("the format %s can be chosen, in words", (format) => {
  expect(TIME_FORMATS.find(([value]) => value === format)?.[1]).toMatch(/days|since/);
});

test("the list says how much of a file could not be read, and nothing of one that was read whole", () => {
  expect(unreadWords({ dead_rows: 1, unread_cells: 12 })).toBe("1 row and 12 cells could not be read");
  expect(unreadWords({ dead_rows: 3, unread_cells: 0 })).toBe("3 rows could not be read");
  expect(unreadWords({ dead_rows: 0, unread_cells: 0 })).toBeNull();
  expect(unreadWords({ dead_rows: null, unread_cells: null })).toBeNull();
});
