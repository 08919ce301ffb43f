import { random } from "../../shared/tests/random";
import { describe, expect, test } from "vitest";
import type { SchemaField } from "../../shared/types";
import {
  comparisonsFor,
  readCondition,
  valuesOf,
  writeCondition,
  type Condition,
  type Row,
  type Value,
} from "../form/condition";
import {
  isComplete,
  lackOf,
  newRow,
  swapped,
  withColumn,
  withComparison,
  withNewRow,
  withRow,
} from "../form/condition-rows";
// the server reads the same table: tests/unit/operators/test_conditions_of_the_editor.py
import table from "./conditions.json";

const pairs = (name: "shown" | "alike" | "text" | "broken") => table[name] as [string, string][];

const rows = (text: string): Condition => {
  const { condition, why } = readCondition(text);
  expect(why, text).toBeNull();
  return condition as Condition;
};

describe("an expression as rows", () => {
  test.each([...pairs("shown"), ...pairs("alike")])("%s is read, and written as %s", (text, written) => {
    expect(writeCondition(rows(text))).toBe(written);
    expect(writeCondition(rows(written))).toBe(written);
  });

  test.each([...pairs("text"), ...pairs("broken")])("%s stays text: %s", (text, why) => {
    expect(readCondition(text)).toEqual({ condition: null, why });
  });

  test("groups are joined by the other word", () => {
    const a: Row = { column: "a", comparison: ">", values: [{ kind: "number", text: "1" }] };
    const b: Row = { column: "b", comparison: "true", values: [] };
    expect(rows("a > 1 or b and b")).toEqual({ inner: "and", groups: [[a], [b, b]] });
    expect(rows("a > 1 and (b or b)")).toEqual({ inner: "or", groups: [[a], [b, b]] });
    expect(rows("a > 1 or b")).toEqual({ inner: "or", groups: [[a, b]] });
    expect(rows(" ")).toEqual({ inner: "and", groups: [] });
  });

  test.each(table.quoted)("a column with the name %s is quoted", (name) => {
    const row: Row = { column: name, comparison: "null", values: [] };
    expect(writeCondition({ inner: "and", groups: [[row]] })).toBe(`\`${name}\` is null`);
  });
});

const STRANGE = [
  "a",
  "Leistung (kW)",
  "now",
  "AND",
  "it's",
  "`",
  '"',
  "x``y",
  "",
  " ",
  "and or",
  "ß\n",
  "\\",
  "1a",
  "'",
];

function randomCondition(seed: number): Condition {
  const below = random(seed);
  const one = <T>(list: readonly T[]): T => list[below(list.length)] as T;
  const name = () => one(STRANGE.filter((each) => each !== ""));
  const value = (text: boolean): Value => {
    if (text || below(4) === 0) return { kind: "text", text: one(STRANGE) + one(STRANGE) };
    if (below(3) === 0) return { kind: "column", text: name() };
    if (below(3) === 0) return { kind: "time", text: "2024-05-01 12:30" };
    return { kind: "number", text: one(["1", "-2.5", ".5", "3.", "1e-7", "-1.5E+10"]) };
  };
  const row = (): Row => {
    const comparison = one(comparisonsFor(undefined));
    const count = valuesOf(comparison) ?? 1 + below(3);
    const values = Array.from({ length: count }, () => value(comparison.endsWith("like")));
    return { column: name(), comparison, values };
  };
  const groups = Array.from({ length: 1 + below(3) }, () => Array.from({ length: 1 + below(3) }, row));
  return { inner: one(["and", "or"]), groups };
}

/** What rows mean: single rows in groups of their own are rows that the outer word joins. */
function plain({ inner, groups }: Condition): Condition {
  if (groups.length === 1) return { inner: groups[0]?.length === 1 ? "and" : inner, groups };
  const single = groups.every((group) => group.length === 1);
  return single ? { inner: inner === "and" ? "or" : "and", groups: [groups.flat()] } : { inner, groups };
}

test("what is written is read as the same rows", () => {
  for (let seed = 0; seed < 2000; seed += 1) {
    const condition = randomCondition(seed);
    const text = writeCondition(condition);
    expect(rows(text), text).toEqual(plain(condition));
  }
});

const COLUMNS: SchemaField[] = [
  { name: "power", type: "number", unit: "kW" },
  { name: "state", type: "string" },
  { name: "on", type: "boolean" },
];

describe("changes of rows", () => {
  test("a new row lacks its value, and an empty text is one only when somebody emptied it", () => {
    const row = newRow(COLUMNS);
    expect(row).toMatchObject({ column: "power", comparison: ">" });
    expect(lackOf(row)).toBe("Type a number.");
    const text = withColumn(row, "state", COLUMNS);
    expect(text.comparison).toBe("=");
    expect(lackOf(text)).toBe("Type a text.");
    expect(lackOf({ ...text, values: [{ kind: "text", text: "" }] })).toBe("");
    expect(lackOf(newRow([]))).toBe("Choose a column.");
  });

  test("numbers and times are checked before they are written", () => {
    const row = (kind: "number" | "time", text: string): Row => ({
      column: "power",
      comparison: ">",
      values: [{ kind, text }],
    });
    expect(lackOf(row("number", "half"))).toBe("half is not a number, such as 0.5.");
    expect(lackOf(row("number", "0,5"))).toBe("");
    expect(lackOf(row("number", "1,500"))).toContain("type 1.500 or 1500");
    expect(lackOf(row("number", " -1e3 "))).toBe("");
    expect(lackOf(row("time", "1.5.2024"))).toBe("1.5.2024 is not a time, such as 2024-05-01 12:30.");
    expect(lackOf(row("time", "2024-05-01T12:30:15.25+02:00"))).toBe("");
  });

  test("another column keeps what fits its type", () => {
    const row: Row = { column: "power", comparison: "<", values: [{ kind: "number", text: "5" }] };
    expect(withColumn(row, "on", COLUMNS)).toEqual({ column: "on", comparison: "true", values: [] });
    expect(withColumn(row, "state", COLUMNS).values).toEqual([{ kind: "text", text: "5" }]);
    expect(withColumn({ ...row, comparison: "in" }, "state", COLUMNS).comparison).toBe("in");
    expect(withComparison(row, "between", COLUMNS).values).toHaveLength(2);
    expect(withComparison(row, "null", COLUMNS).values).toEqual([]);
  });

  test("a group goes with its last row, and both words change together", () => {
    const two = rows("on or (on and power > 1)");
    expect(writeCondition(withRow(two, 0, 0, null))).toBe("on and power > 1");
    expect(writeCondition(swapped(two))).toBe("on and (on or power > 1)");
    const more = withNewRow(two, 2, COLUMNS);
    expect(more.groups.map((group) => group.length)).toEqual([1, 2, 1]);
    expect(isComplete(two)).toBe(true);
    expect(isComplete(more)).toBe(false);
  });
});
