import { describe, expect, test } from "vitest";
import { fix, fixLine, fixTable, fixTime } from "../fix";
import {
  applyToLike,
  changeColumn,
  columnsLike,
  NO_CHANGES,
  readingOf,
  refusalOf,
  withValue,
} from "../reading";
import { startOf } from "../start";
import { ASKS, column, FILE, FOUND, READING } from "./fixtures";

describe("what a person decides", () => {
  test("an answer changes the places that it names, and no other", () => {
    const read = readingOf(ASKS, { ...NO_CHANGES, answers: { thousands: 0 } });
    expect(read.columns[1]).toEqual({ ...column(1, "flow", "string"), decimal: ",", thousands: "." });
    expect({ ...read, columns: [] }).toEqual({ ...READING, columns: [] });
    expect(READING.columns[1]?.thousands).toBe(null);
  });

  test("an answer holds for its column, also when one before it is left out", () => {
    const out = changeColumn({ ...NO_CHANGES, answers: { thousands: 0 } }, 0, { out: true });
    const read = readingOf(ASKS, out);
    expect(read.columns.map(({ name, thousands }) => [name, thousands])).toEqual([
      ["flow", "."],
      ["pressure", null],
    ]);
  });

  test("a place that is not there changes nothing", () => {
    expect(withValue(READING, "columns.9.type", "number")).toEqual(READING);
    expect(withValue(READING, "nothing.here", 1)).toEqual(READING);
    expect(withValue({ time: null }, "time.zone", "UTC")).toEqual({ time: null });
  });

  test("all offers at once: what was taken for the same is read alike", () => {
    const one = changeColumn(NO_CHANGES, 1, { type: "number", name: "Q", unit: "m3/h" });
    expect(columnsLike(FOUND, one, 1)).toEqual([2]);
    const all = applyToLike(FOUND, one, 1);
    expect(readingOf(FOUND, all).columns.map(({ name, type, unit }) => [name, type, unit])).toEqual([
      ["time", "timestamp", null],
      ["Q", "number", "m3/h"],
      ["pressure", "number", null],
    ]);
    expect(columnsLike(FOUND, all, 1)).toEqual([]);
    expect(columnsLike(FOUND, NO_CHANGES, 1)).toEqual([]);
  });

  test("a column that was left out comes back as it was", () => {
    const out = changeColumn(NO_CHANGES, 2, { out: true });
    expect(readingOf(FOUND, out).columns.length).toBe(2);
    expect(readingOf(FOUND, changeColumn(out, 2, { out: false }))).toEqual(READING);
  });

  test("an import waits for each answer and for names that tell columns apart", () => {
    expect(refusalOf(ASKS, NO_CHANGES)).toBe("One question is open.");
    expect(refusalOf(ASKS, { ...NO_CHANGES, answers: { thousands: 1 } })).toBe(null);
    expect(refusalOf(FOUND, changeColumn(NO_CHANGES, 1, { name: "time" }))).toContain("called time");
    expect(refusalOf(FOUND, changeColumn(NO_CHANGES, 1, { name: " " }))).toContain("no name");
    const none = [0, 1, 2].reduce((all, source) => changeColumn(all, source, { out: true }), NO_CHANGES);
    expect(refusalOf(FOUND, none)).toContain("No column is left");
  });
});

describe("what the rest is found again around", () => {
  test("a line that is fixed frees those that can no longer be what they were", () => {
    const names = fixLine(fixLine(NO_CHANGES, "first_line", 2), "header_line", 5);
    expect(names.fixed).toEqual({ header_line: 5 });
    const units = fixLine(names, "units_line", 6);
    expect(units.fixed).toEqual({ header_line: 5, units_line: 6 });
    expect(fixLine(units, "first_line", 4).fixed).toEqual({ first_line: 4 });
    expect(fixLine(units, "header_line", null).fixed).toEqual({ header_line: null, units_line: 6 });
    expect(fixLine(fixLine(units, "first_line", 9), "first_line", null).fixed).toEqual(units.fixed);
    expect(fixLine(fixLine(units, "last_line", 9), "last_line", null).fixed).toEqual(units.fixed);
    expect(fixLine(fixLine(units, "last_line", 9), "first_line", 12).fixed.last_line).toBe(undefined);
  });

  test("another delimiter makes other columns, so what was said of them is gone", () => {
    const named = changeColumn(NO_CHANGES, 1, { name: "Q" });
    expect(fix(named, "decimal", ",").columns).toEqual(named.columns);
    expect(fix(named, "delimiter", ";")).toEqual({ ...NO_CHANGES, fixed: { delimiter: ";" } });
  });

  test("a table that is chosen of several is looked at like any other", () => {
    const named = changeColumn(NO_CHANGES, 1, { name: "Q" });
    expect(fixTable(named, { delimiter: ";", member: "b.csv", columns: [] })).toEqual({
      ...NO_CHANGES,
      fixed: { member: "b.csv" },
    });
    expect(fixTable(named, { first_line: 9, last_line: null, columns: [] }).fixed).toEqual({
      first_line: 9,
      last_line: null,
    });
    expect(fixTable(named, { last_line: 9 })).toEqual(named);
    expect(fixTable(named, { "time.format": "iso" })).toEqual(named);
  });

  test("another time's pattern is found again, its zone stays", () => {
    const before = { ...NO_CHANGES, time: { zone: "Europe/Berlin", format: "iso" } };
    const two = fixTime(before, [0, 1]);
    expect([two.fixed, two.time]).toEqual([{ "time.columns": [0, 1] }, { zone: "Europe/Berlin" }]);
    expect(fixTime(two, []).fixed).toEqual({ time: null });
  });
});

describe("a file that was imported before", () => {
  test("starts as it was read, and what was left out can be taken again", () => {
    const reading = { ...READING, delimiter: ";", columns: READING.columns.slice(0, 2) };
    const { detection, changes } = startOf({ ...FILE, state: "imported", detection: ASKS, reading });
    expect(readingOf(detection, changes)).toEqual(reading);
    expect(refusalOf(detection, changes)).toBe(null);
    const taken = changeColumn(changes, 2, { out: false });
    expect(readingOf(detection, taken).columns.map(({ name }) => name)).toEqual(["time", "flow", "pressure"]);
  });

  test("that asks what only the whole file has shown starts with those questions", () => {
    const asks = startOf({ ...FILE, detection: ASKS, reading: READING });
    expect(refusalOf(asks.detection, asks.changes)).toBe("One question is open.");
  });
});
