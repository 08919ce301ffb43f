import { expect, test } from "vitest";
import { rawRows, type RawRow } from "../raw";

const raw = (id: string, text: unknown): RawRow => ({ id, at: null, key: null, reason: "no", raw: text });

test("rows that are objects of JSON stand in columns, and as they came when they are open", () => {
  const { columns, rows } = rawRows([raw("a", '{"n": "2,5"}'), raw("b", '{"n": 1, "unit": "kW"}')]);
  expect(columns.map(({ name }) => name)).toEqual(["n", "unit"]);
  expect(rows).toMatchObject([
    { id: "a", reason: "no", values: ["2,5", undefined], came: '{"n": "2,5"}' },
    { id: "b", values: [1, "kW"] },
  ]);
});

test("rows of which one is no object, or has a number that would become another one, stay as they came", () => {
  for (const other of ["no JSON", "2024-05-01T12:00:00Z", "[1]", "{}", '{"n": 12345678901234567890}', 7]) {
    const { columns, rows } = rawRows([raw("a", other)]);
    expect(columns).toEqual([{ name: "as it came", type: "string" }]);
    expect(rows).toEqual([{ id: "a", at: null, key: null, reason: "no", values: [String(other)] }]);
  }
});

test("a computed fraction and digits in a text are no long numbers", () => {
  const { columns, rows } = rawRows([raw("a", '{"x": 0.30000000000000004, "serial": "4711000012345678"}')]);
  expect(columns.map(({ name }) => name)).toEqual(["x", "serial"]);
  expect(rows[0]?.values).toEqual([0.30000000000000004, "4711000012345678"]);
});
