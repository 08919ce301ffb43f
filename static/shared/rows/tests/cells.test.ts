import { expect, test } from "vitest";
import type { PeekRecord } from "../../types";
import { cellText, tableText, columnsOf, isNumber, newestFirst, rowOf } from "../cells";

const record = (offset: number, value: unknown, at: string | null = "2026-11-28T10:00:00Z"): PeekRecord => ({
  partition: 0,
  offset,
  at,
  key: "m1",
  value,
});

test("a cell has all digits, tells a time from a text, and no value from an empty text", () => {
  expect(cellText(0.1 + 0.2)).toBe("0.30000000000000004");
  expect(cellText("1234567890123456789", "integer")).toBe("1234567890123456789");
  expect(cellText(null)).toBeNull();
  expect(cellText("")).toBe("");
  expect(cellText({ a: [1] })).toBe('{"a":[1]}');
  expect(cellText("2026-11-28T10:00:00Z", "string")).toBe("2026-11-28T10:00:00Z");
  expect(cellText("2026-11-28T10:00:00Z")).not.toContain("T");
  expect(cellText("yesterday", "timestamp")).toBe("yesterday");
});

test("a table shows of a float the digits that are sure, and of all else everything", () => {
  const shown = (value: unknown, decimals?: number) => tableText(value, { name: "x", decimals });
  expect(shown(-17.219999999999995)).toBe("-17.22");
  expect(shown(0.1 + 0.2)).toBe("0.3");
  expect(shown(123456789012.345)).toBe("123456789012.345");
  expect(shown(9007199254740991)).toBe("9007199254740991");
  expect(shown(1 / 3, 2)).toBe("0.33");
  expect(shown("-17.219999999999995")).toBe("-17.219999999999995");
  expect(shown(null)).toBeNull();
});

test("columns are those of the stream, else each name that a record has", () => {
  const records = [record(0, { a: 1 }), record(1, { b: 2 }), record(2, "text")];
  expect(columnsOf(records).map(({ name }) => name)).toEqual(["a", "b"]);
  expect(columnsOf(records, [{ name: "b", type: "integer" }])).toEqual([{ name: "b", type: "integer" }]);
  expect(columnsOf([record(0, "text")])).toEqual([{ name: "value" }]);
});

test("a record that is no object stands whole in the first column", () => {
  const columns = [{ name: "a" }, { name: "b" }];
  expect(rowOf(record(3, { b: 2 }), columns).values).toEqual([undefined, 2]);
  expect(rowOf(record(3, [1, 2]), columns).values).toEqual([[1, 2], undefined]);
  expect(rowOf(record(3, 7), columns).id).toBe("0/3");
});

test("numbers stand right: by the column's type, else by its values", () => {
  expect(isNumber({ name: "a", type: "integer" })).toBe(true);
  expect(isNumber({ name: "a", type: "string" }, [1])).toBe(false);
  expect(isNumber({ name: "a" }, [1, null])).toBe(true);
  expect(isNumber({ name: "a" }, [1, "x"])).toBe(false);
  expect(isNumber({ name: "a" })).toBe(false);
});

test("records stand newest first, and by offset at one time", () => {
  const later = record(1, {}, "2026-11-28T10:00:01Z");
  expect(newestFirst([record(2, {}), record(5, {}), later]).map(({ offset }) => offset)).toEqual([1, 5, 2]);
});
