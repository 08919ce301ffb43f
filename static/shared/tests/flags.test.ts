import { describe, expect, test } from "vitest";
import { csvOf } from "../csv";
import { flagsOf, FLAGS_MAX, type FlagRow } from "../flags";
import { flagLook, flagTraces } from "../ui/chart-flags";
import { T0 } from "./fixtures";

const row = (second: number, value: FlagRow["value"], key = ""): FlagRow => ({
  t: T0 + 1000 * second,
  key,
  value,
});
const seconds = (times: number[]) => times.map((t) => (t - T0) / 1000);

describe("flags", () => {
  test("each row where a column is true is marked, and nothing else is taken for true", () => {
    const values = [true, false, null, "true", 1, undefined, true];
    const rows = [...values.map((high, second) => row(second, { high })), row(7, null)];
    const [high] = flagsOf(rows, ["high"]);
    expect(high?.name).toBe("high");
    expect(seconds(high?.times ?? [])).toEqual([0, 6]);
  });

  test("a run begins where the row before, of the same key, was not true", () => {
    const rows = [
      row(0, { on: true }, "a"),
      row(1, { on: false }, "b"),
      row(2, { on: true }, "a"),
      row(3, { on: true }, "b"),
      row(4, { on: false }, "a"),
      row(5, { on: true }, "a"),
    ];
    const [on] = flagsOf(rows, ["on"]);
    expect(seconds(on?.times ?? [])).toEqual([0, 2, 3, 5]);
    expect(seconds(on?.begins ?? [])).toEqual([0, 3, 5]);
  });

  test("a column that the rows do not have marks nothing, and there are at most five", () => {
    const names = ["a", "b", "c", "d", "e", "f"];
    const flags = flagsOf([row(0, { a: true })], names);
    expect(flags.map(({ name, times }) => [name, times.length])).toEqual([
      ["a", 1],
      ["b", 0],
      ["c", 0],
      ["d", 0],
      ["e", 0],
    ]);
    expect(flags).toHaveLength(FLAGS_MAX);
  });

  test("columns differ in colour and in shape", () => {
    const looks = Array.from({ length: FLAGS_MAX }, (_, index) => flagLook(index));
    for (const what of ["colour", "symbol", "glyph"] as const)
      expect(new Set(looks.map((look) => look[what])).size).toBe(FLAGS_MAX);
  });

  test("what is drawn of a column does not grow into one line for each row", () => {
    const rows = Array.from({ length: 500 }, (_, second) => row(second, { on: second > 0 }));
    const [on] = flagsOf(rows, ["on"]);
    const traces = flagTraces(on ? [{ ...on, index: 2 }] : [], 100, (property) => property);
    expect(traces).toHaveLength(2);
    const [lines, shapes] = traces;
    expect(lines?.x).toEqual([new Date(T0 + 1000), new Date(T0 + 1000), null]);
    expect(shapes?.x).toHaveLength(499);
    expect(shapes?.marker).toMatchObject({ color: flagLook(2).colour, symbol: flagLook(2).symbol });
  });

  test("a file of the figures names them where they are true, and each column's unit", () => {
    const flags = flagsOf([row(0, {}), row(1, { high: true }), row(2, {})], ["high"]);
    const times = [0, 1, 2].map((second) => T0 + 1000 * second);
    const lines = [{ name: "power", unit: "kW", values: [1, 2, 3] }];
    const [head, ...rest] = csvOf({ unit: "", times, lines, flags }).trim().split("\r\n");
    expect(head).toBe("time,power (kW),events");
    expect(rest.map((line) => line.split(",").slice(1))).toEqual([
      ["1", ""],
      ["2", "high"],
      ["3", ""],
    ]);
  });
});
