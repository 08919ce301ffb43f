import { expect, test } from "vitest";
import { missesTarget } from "../latency";

const late = (
  latency_ms_p50: number | null,
  latency_ms_p95: number | null,
  latency_ms_target: number | null = 500,
) => missesTarget({ latency_ms_p50, latency_ms_p95, latency_ms_target });

test("a person should look where half of the batches are late, or some are by far", () => {
  expect(late(510, 520)).toBe(true);
  expect(late(300, 1010)).toBe(true);
});

test("and not where a batch is a little late now and then", () => {
  expect(late(455, 592)).toBe(false);
  expect(late(455, 498)).toBe(false);
});

test("nothing is known to be late before it is measured, or without a target", () => {
  expect(late(null, null)).toBe(false);
  expect(late(900, 900, null)).toBe(false);
});
