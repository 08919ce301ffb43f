import { describe, expect, test } from "vitest";
import { pointOf, total, withGaps } from "../points";
import { element } from "./fixtures";

const HEARD = element({ rows_in_per_s: 98, rows_out_per_s: 2, lag_rows: 7, latency_ms_p50: 40 });
/** As the server gives it while its node is not heard. */
const SILENT = element({ status: "silent", lag_rows: null, rows_out_per_s: null });

describe("the points of a chart", () => {
  test("an element of a silent node leaves a gap in every line, its state's too", () => {
    expect(pointOf(HEARD, 1)).toMatchObject({ t: 1, rows_in_per_s: 98, lag_rows: 7, state_bytes: 1_200_000 });
    expect(pointOf(SILENT, 2)).toEqual({ t: 2 });
  });

  test("a history without points for a while is not joined over it", () => {
    const points = [0, 2, 4, 64, 66].map((second) => ({ t: 1e12 + second * 1000, lag_rows: 1 }));
    expect(withGaps(points).map((point) => [point.t - 1e12, "lag_rows" in point])).toEqual([
      [0, true],
      [2000, true],
      [4000, true],
      [4001, false],
      [64_000, true],
      [66_000, true],
    ]);
  });
});

test("a sum is of what is known, and unknown when nothing is", () => {
  expect(total([HEARD, SILENT], "rows_out_per_s")).toBe(2);
  expect(total([SILENT], "lag_rows")).toBeNull();
  expect(total([], "lag_rows")).toBeNull();
});
