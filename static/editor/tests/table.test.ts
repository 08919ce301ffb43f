import { describe, expect, test } from "vitest";
import { chosenOf, drawnElsewhere, fieldsOf } from "../form/schema";
import { patched, proposed, question, rowsSay, timeSays, withType, type TablePreview } from "../form/table";

const TABLE = {
  reads: ["delimiter", "header", "columns", "time_column", "time_format"],
  time: ["time_column", "time_format"] as [string, string],
  without_time: { rate: 10 },
};
const READING = {
  format: "iso",
  words: "ISO 8601",
  zone: "assumed" as const,
  first: "2012-02-22T16:46:28+00:00",
  step_s: 0.01,
  rows: 100,
  unread: 0,
  back: 0,
  elapsed: false,
};
const FOUND: TablePreview = {
  delimiter: "\t",
  decimal: ".",
  header: true,
  columns: [
    { name: "ts", type: "timestamp", near: null, times: [READING] },
    { name: "power", type: "string", near: null, times: [] },
  ],
  columns_total: 2,
  first: [{ line: 2, cells: ["2012-02-22 16:46:28", "1"], bad: false }],
  rows: 2000,
  whole: false,
  rows_about: 66_000,
  bad: [],
  bad_total: 0,
  time_column: "ts",
  time_format: "iso",
  replaced: 0,
  fixed: false,
};
const TIMELESS = { ...FOUND, delimiter: ",", time_column: null, time_format: null };

describe("a file that is chosen", () => {
  test("is read as it was found, by its time", () => {
    const params = patched({ path: "upload:b", loops: 1 }, proposed(TABLE, FOUND, {}));
    expect(params).toEqual({
      path: "upload:b",
      loops: 1,
      delimiter: "tab",
      decimal: ".",
      header: true,
      time_column: "ts",
      time_format: "iso",
    });
  });

  test("without a time gets rows per second, and one with a time the recorded pace again", () => {
    const timeless = patched({}, proposed(TABLE, TIMELESS, {}));
    expect(timeless).toEqual({ delimiter: ",", decimal: ".", header: true, rate: 10 });
    expect(patched(timeless, proposed(TABLE, FOUND, timeless)).rate).toBeUndefined();
    expect(patched({ rate: 50 }, proposed(TABLE, TIMELESS, { rate: 50 })).rate).toBe(50);
    expect(patched({ rate: 50 }, proposed(TABLE, FOUND, { rate: 50 })).rate).toBe(50);
  });

  test("leaves nothing of the file before it", () => {
    const before = {
      columns: [{ name: "x", type: "number" }],
      time_column: "x",
      time_format: "epoch_s",
      rate: 10,
    };
    expect(patched(before, proposed(TABLE, { ...TIMELESS, fixed: true }, before))).toEqual({ rate: 10 });
  });

  test("is asked for with what the parameters say, and nothing else", () => {
    const params = {
      path: "upload:a",
      rate: 10,
      delimiter: ";",
      header: false,
      time_column: "",
      columns: null,
    };
    expect(question(TABLE, "upload:b", params)).toEqual({ path: "upload:b", delimiter: ";", header: false });
  });
});

describe("what is said of it", () => {
  test("the time, its zone and its pace", () => {
    expect(timeSays("ts", READING)).toEqual([
      "ts is the time of a row, read as ISO 8601. The time of the first row is 22 Feb 2012, 16:46:28 UTC, and one follows about every 10 ms.",
      "It names no time zone, so it is read as UTC.",
    ]);
    expect(timeSays("ts", { ...READING, zone: "written", back: 3 })[1]).toMatch(
      /^3 of 100 rows go back in time/,
    );
    expect(timeSays("ts", { ...READING, back: 99 }).at(-1)).toMatch(/all come at once/);
    const steps = [1, 0.25, 90, 900, 3600, 86_460, 604_800].map((step_s) => {
      return /about every (.+)\.$/.exec(timeSays("ts", { ...READING, step_s })[0]!)?.[1];
    });
    expect(steps).toEqual(["1 s", "250 ms", "1 min 30 s", "15 min", "1 h", "24 h", "7 days"]);
    expect(timeSays("t", { ...READING, first: "1900-01-01T10:00:00+00:00" })[0]).toContain("is 10:00:00 UTC");
    const elapsed = { ...READING, elapsed: true, words: "seconds since the start", zone: "written" as const };
    expect(timeSays("t", elapsed)).toEqual([
      "t counts seconds since the start, and one follows about every 10 ms.",
    ]);
  });

  test("how much of the file is shown", () => {
    expect(rowsSay(FOUND)).toBe("The first row of about 66,000.");
    const six = { ...FOUND, first: Array.from({ length: 6 }, () => FOUND.first[0]!) };
    expect(rowsSay({ ...six, whole: true, rows_about: 2000 })).toBe("The first 6 rows of 2,000.");
    expect(rowsSay({ ...six, rows_about: null, columns_total: 2000 })).toBe(
      "The first 6 rows and the first 2 of 2,000 columns.",
    );
    expect(rowsSay({ ...FOUND, whole: true, rows: 1 })).toBe("The whole file: 1 row.");
    expect(rowsSay({ ...FOUND, rows: 0, first: [] })).toBe("The file has no rows.");
  });

  test("one column as another type, the rest as they are", () => {
    expect(withType(FOUND.columns, "power", "number")).toEqual([
      { name: "ts", type: "timestamp" },
      { name: "power", type: "number" },
    ]);
  });
});

describe("choices in words", () => {
  const choices = [
    { title: "as recorded", value: null, with: ["speed"] },
    { title: "rows per second", given: 10 },
    { title: "as fast as it goes", value: 1e6 },
  ];

  test("a value is one of them, or the number that is asked for", () => {
    expect([null, undefined, 1e6, 25, "x"].map((value) => chosenOf(choices, value))).toEqual([0, 0, 2, 1, 1]);
  });

  test("what belongs to a choice or to a table is drawn there alone", () => {
    const schema = {
      properties: {
        path: { type: "string", format: "file", "x-table": TABLE },
        rate: { anyOf: [{ type: "number" }, { type: "null" }], default: null, "x-choices": choices },
        speed: { type: "number" },
        header: { type: "boolean" },
      },
    };
    const fields = fieldsOf(schema, schema, "params");
    expect(fields.map((field) => field.kind)).toEqual(["file", "choices", "number", "boolean"]);
    const elsewhere = drawnElsewhere(fields);
    expect(fields.filter((field) => !elsewhere.has(field.name)).map((field) => field.name)).toEqual([
      "path",
      "rate",
    ]);
  });
});
