import { expect, test } from "vitest";
import { gapWords } from "../live/connector";

const said = {
  state: "connected" as const,
  why: "",
  since: null,
  rows_total: 5,
  refused_total: 0,
  gaps_total: 0,
  gap_rows_total: 0,
  spool_bytes: 0,
  gap_at: null,
  trouble: null,
};

test("gaps say how many rows are lost, as far as that is known", () => {
  expect(gapWords(said)).toBe("");
  expect(gapWords({ ...said, gaps_total: 1 })).toBe("1 gap: the number of lost rows is not known.");
  expect(gapWords({ ...said, gaps_total: 2, gap_rows_total: 15 })).toBe("2 gaps: 15 rows or more are lost.");
});
