import { expect, test } from "vitest";
import type { LetterRows } from "../../shared/types";
import {
  cellFault,
  changes,
  columnsOf,
  faultsIn,
  faultsTold,
  isTable,
  pasted,
  replacedIn,
  replayBody,
  rowsOf,
  wholeOf,
} from "../live/mend-rows";

const AT = "2024-05-01T12:00:00+00:00";
const LETTER = { raw: "{}", reason: "no", key: "m1", lies_at: { partition: 1, offset: 9 } };
const loaded: LetterRows = {
  columns: [
    { name: "machine", type: "string" },
    { name: "temp", type: "number" },
  ],
  rows: [
    { ...LETTER, offset: 3, at: AT, cells: { machine: "m1", temp: "21,5" } },
    { ...LETTER, offset: 4, at: null, lies_at: null, cells: { machine: null, temp: 7 } },
  ],
  more: false,
  topic: "readings",
};
const columns = columnsOf(loaded);
const rows = rowsOf(loaded);

test("a row shows its key and where it lies", () => {
  expect(rows.map(({ key, liesAt }) => [key, liesAt])).toEqual([
    ["m1", "1/9"],
    ["m1", null],
  ]);
});

test("a letter opens whole, with what came, and with the cells as they are now", () => {
  expect(rows.map((row) => wholeOf(row, "readings"))).toMatchObject([
    {
      at: AT,
      came: "{}",
      values: ["m1", "21,5"],
      lies: "Letter 3, key m1, topic readings, partition 1, offset 9.",
    },
    { at: null, values: [null, "7"], lies: "Letter 4, key m1." },
  ]);
  for (const typed of ["7", "2024-05-01 12:00"])
    expect(wholeOf({ ...rows[0]!, cells: [typed, "m1", "7"] }, "readings").at).toBeNull();
});

test("cells that do not fit are told where they are, and a missing time, too", () => {
  expect([...faultsIn(rows, columns)]).toEqual([
    ["3.temp", "a number is needed"],
    ["4._time", "the event time is not known: enter it"],
  ]);
});

test.each([
  ["number", "1e3", true],
  ["number", "1e999", false],
  ["number", "", true],
  ["integer", "2.5", false],
  ["integer", "2.0", true],
  ["boolean", "True", true],
  ["boolean", "yes", false],
  ["timestamp", "2024-05-01 12:00", true],
  ["timestamp", "noon", false],
  ["string", "anything", true],
])("as %s the text %j fits: %s", (type, text, fits) => {
  expect(cellFault(text, { name: "x", type }) === null).toBe(fits);
});

test("one change mends a column of all rows", () => {
  const mended = replacedIn(rows, 2, ",", ".");
  expect(mended.map((row) => row.cells[2])).toEqual(["21.5", "7"]);
  expect(changes(rows, mended)).toBe(1);
  expect(replacedIn(rows, 1, "", "m2").map((row) => row.cells[1])).toEqual(["m2", "m2"]);
});

test("cells of a spreadsheet are pasted from one place on, and what goes over the edge is left out", () => {
  expect(isTable("21.5\r\n")).toBe(false);
  expect(isTable("1\n2")).toBe(true);
  expect(pasted(rows, 0, 1, "a\t1\tlost\r\nb\t2\nlost\t3\n").map((row) => row.cells.slice(1))).toEqual([
    ["a", "1"],
    ["b", "2"],
  ]);
  expect(pasted(rows, 1, 2, "9\n8").map((row) => row.cells[2])).toEqual(["21,5", "9"]);
});

test("an empty cell is no value, and the server's faults stand at their cells", () => {
  expect(replayBody(rows, columns, "no")).toEqual({
    offsets: [3, 4],
    reason: "no",
    rows: [
      { offset: 3, at: AT, cells: { machine: "m1", temp: "21,5" } },
      { offset: 4, at: null, cells: { machine: null, temp: "7" } },
    ],
  });
  const fault = { element: "x", path: "rows.3.temp", message: "a number is needed" };
  expect([...faultsTold([fault, { ...fault, path: "spec" }])]).toEqual([["3.temp", "a number is needed"]]);
});
