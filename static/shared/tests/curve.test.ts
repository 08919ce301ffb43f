import { describe, expect, test } from "vitest";
import type { PeekRecord } from "../types";
import { Gathering, toldRows } from "../curve";

const T0 = Date.parse("2026-11-20T12:00:00Z");
const record = (second: number): PeekRecord => ({
  partition: 0,
  offset: second,
  at: new Date(T0 + 1000 * second).toISOString(),
  key: null,
  value: { s: second },
});
const answer = (seconds: number[], rows: number, left_out = 0) => ({
  records: seconds.map(record),
  rows,
  left_out,
});

describe("what a live chart gathers", () => {
  test("is the newest window, however it came", () => {
    const gathering = new Gathering();
    gathering.add(answer([0, 1, 4], 400), 4000);
    const { records, rows } = gathering.add(answer([5, 6], 200), 4000);
    expect(records.map(({ offset }) => offset)).toEqual([4, 5, 6]);
    expect(rows).toBe(400); // half of the first answer's are older than the window
    expect(gathering.add(answer([9], 100), 4000)).toMatchObject({
      rows: 300,
      records: [{ offset: 5 }, { offset: 6 }, { offset: 9 }],
    });
  });

  test("rows that come seldom and unevenly are counted, and not estimated", () => {
    const gathering = new Gathering();
    gathering.add(answer([0, 1, 2, 3, 60], 5), 60_000);
    const gathered = gathering.add(answer([65], 1), 60_000);
    expect([gathered.rows, gathered.records.length]).toEqual([2, 2]);
    expect(toldRows(gathered, [])).toBe("");
  });

  test("an answer without news changes nothing", () => {
    const gathering = new Gathering();
    gathering.add(answer([0, 1], 200), 4000);
    expect(gathering.add(answer([], 0), 4000)).toMatchObject({ rows: 200, records: [{}, {}] });
  });
});

describe("what is left out is said", () => {
  const gathered = { records: [record(0), record(1)], rows: 2, left_out: 0 };

  test("and nothing where all rows are drawn", () => {
    expect(toldRows(gathered, [])).toBe("");
  });

  test("rows between those of a pixel, older rows and curves", () => {
    const told = toldRows({ ...gathered, rows: 10_000, left_out: 5_000 }, ["k15", "k16"]);
    expect(told).toContain("About 10,000 rows, drawn by the least, the greatest and the last of each pixel.");
    expect(told).toContain("About 5,000 older rows");
    expect(told).toContain("2 curves are not drawn: k15, k16");
  });
});
