import { expect, test } from "vitest";
import { basisOf, curve, estimate, missing, perRow, placeOf, sentenceOf } from "../target-cost";
import type { LiveElement } from "../types";
import { element } from "./fixtures";

const COST = { cpu_cores: 0.2, batches_per_s: 2.5, rows_per_s: 200, wait_ms_max: null };
const running = (change: Partial<LiveElement> = {}): LiveElement =>
  element({
    heard: true,
    latency_ms_target: 500,
    batch_ms_p50: 60,
    cost: COST,
    ...change,
  });

function known(change: Partial<LiveElement> = {}, node_cores?: number) {
  const found = estimate(running(change), node_cores);
  if (!found) throw new Error("no estimate");
  return found;
}

test("the curve goes through what is measured, and never rises with the target", () => {
  const found = known();
  expect(found.at(500)).toBeCloseTo(0.2);
  const values = curve(found);
  values.slice(1).forEach((value, index) => expect(value).toBeLessThanOrEqual(values[index] ?? 0));
  expect(placeOf(5, found)).toBe(0);
  expect(placeOf(10_000, found)).toBe(1);
  expect(curve(known({ latency_ms_target: 60_000 })).at(-1)).toBeCloseTo(0.2);
});

test("at four times the target there are about a quarter of the batches", () => {
  // 445 ms from batch to batch now, 1,945 ms then
  expect(known().at(2000)).toBeCloseTo((0.2 * 445) / 1945);
  expect(sentenceOf(known())).toBe("At a target of 2 s: about 0.05 cores instead of 0.20.");
  const long = known({ latency_ms_target: 5000 });
  expect(sentenceOf(long)).toBe("At a target of 1 s: about 1.0 cores instead of 0.20.");
});

test("where batches are rarer than asked for, a longer target changes nothing until it asks for as few", () => {
  const busy = known({ cost: { ...COST, batches_per_s: 1 } });
  expect(busy.at(1000)).toBeCloseTo(0.2);
  expect(busy.at(2000)).toBeCloseTo(0.2 / 1.945);
  expect(busy.at(100)).toBeLessThan(known({ cost: { ...COST, cpu_cores: 0.5 } }).at(100));
});

test("batches are no more than rows, nor more than one after another", () => {
  const each = known({ cost: { ...COST, rows_per_s: 0.2 } });
  expect(each.at(5)).toBeLessThan(0.2 * 1.2);
  const one = known();
  expect(one.at(5)).toBe(one.at(100));
  expect(one.at(5)).toBeCloseTo((0.2 * 445) / 60);
});

test("what fills a batch or a source of its own waits for no target", () => {
  const full = known({ cost: { ...COST, rows_per_s: 20_000 } });
  expect(full.at(10_000)).toBeCloseTo(full.at(500));
  expect(sentenceOf(full)).toBe("At a target of 2 s: about as much as now, 0.20 cores.");
  const source = known({ cost: { ...COST, wait_ms_max: 1000 } });
  expect(source.at(10_000)).toBe(source.at(2000));
});

test("it takes no more than all cores of its node", () => {
  expect(known({}, 1).at(5)).toBe(1);
});

test("it says from what it is estimated, and why it is not", () => {
  expect(basisOf(running())).toContain("80 ms of CPU per batch, 2.5 batches and 200 rows per second");
  expect(perRow(running())).toBe("1 ms");
  expect(estimate(running({ cost: null }))).toBeNull();
  expect(missing(running({ cost: null }))).toBe("It has not been measured yet.");
  expect(missing(running({ cost: null, heard: false }))).toContain("does not answer");
  const idle = running({ cost: { cpu_cores: 0, batches_per_s: 0, rows_per_s: 0, wait_ms_max: null } });
  expect(estimate(idle)).toBeNull();
  expect(missing(idle)).toContain("No row arrived in the last half minute");
  expect(perRow(idle)).toBeNull();
});
