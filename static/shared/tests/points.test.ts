import { describe, expect, test } from "vitest";
import {
  aligned,
  loadPointOf,
  passes,
  pointOf,
  runsInside,
  waiting,
  withGaps,
  withNewest,
  written,
} from "../points";
import type { ElementPoint } from "../types";
import { element, node, T0 } from "./fixtures";

const HEARD = element({ rows_in_per_s: 98, rows_out_per_s: 2, lag_rows: 7, latency_ms_p50: 40 });
/** As the server gives it while its node is not heard. */
const SILENT = element({ status: "silent", heard: false, lag_rows: null, rows_out_per_s: null });

/** A node that was heard so many seconds after the start. */
const heardAt = (second: number) =>
  node("edge-a", { last_seen_at: new Date(T0 + second * 1000).toISOString() });

test("what passes an element is a number as soon as one of its rates is known", () => {
  const of = (rows_in_per_s: number | null, rows_out_per_s: number | null) =>
    passes(element({ rows_in_per_s, rows_out_per_s }));
  expect([of(98, 2), of(0, 5), of(null, 5), of(0, null), of(0, 0), of(null, null)]).toEqual([
    98,
    5,
    5,
    0,
    0,
    null,
  ]);
});

test("no rows wait before an element that gets all of them from elements that run as one with it", () => {
  const [mine, other] = [{ group: "watch" }, { group: "power" }];
  expect(runsInside(mine, [mine, mine])).toBe(true);
  expect([runsInside(mine, [mine, other]), runsInside(mine, []), runsInside(mine, [undefined])]).toEqual([
    false,
    false,
    false,
  ]);
  expect(runsInside(undefined, [undefined])).toBe(false);
});

describe("the points of a chart", () => {
  test("a point has the time of its report; without a report there is none", () => {
    expect(pointOf(HEARD, heardAt(1))).toMatchObject({ t: T0 + 1000, rows_in_per_s: 98, lag_rows: 7 });
    expect(pointOf(HEARD, node("edge-a", { last_seen_at: null }))).toBeNull();
    expect(pointOf(HEARD, undefined)).toBeNull();
  });

  test("an element of a silent node leaves a gap in every line, its state's too", () => {
    expect(pointOf(HEARD, heardAt(1))).toMatchObject({ state_bytes: 1_200_000 });
    expect(pointOf(SILENT, heardAt(1))).toEqual({ t: T0 + 1001 });
    expect(loadPointOf({ ...heardAt(1), load: { cpu_ratio: 0.5 }, up: false })).toEqual({ t: T0 + 1001 });
  });

  test("figures that come again without a new report are no new measurement", () => {
    const told = [heardAt(1), heardAt(2), heardAt(2), heardAt(2)].map((from) => pointOf(HEARD, from));
    const points = told.reduce<ElementPoint[]>((old, point) => (point ? withNewest(old, point) : old), []);
    expect(points.map(({ t }) => t - T0)).toEqual([1000, 2000]);
  });

  test("a report that is told in two messages is one point, with what the second says", () => {
    const first = { t: 1000, lag_rows: 7 };
    expect(withNewest([first], { t: 1000, lag_rows: 9 })).toEqual([{ t: 1000, lag_rows: 9 }]);
    expect(withNewest([first], { t: 900, lag_rows: 9 })).toEqual([first]);
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

test("several nodes share one axis of times, which begins with the first point of any", () => {
  const first = [{ t: T0 + 4100, cpu_ratio: 0.1 }];
  const second = [
    { t: T0 + 8000, cpu_ratio: 0.2 },
    { t: T0 + 9000, cpu_ratio: 0.3 },
  ];
  const { times, values } = aligned([first, second], "cpu_ratio", T0 + 17_000, 600_000);
  expect(times.map((t) => t - T0)).toEqual([4000, 8000, 12_000, 16_000]);
  expect(values).toEqual([
    [0.1, 0.1, null, null],
    [null, 0.3, 0.3, null],
  ]);
});

test("a sum is of what is known, and unknown when nothing is", () => {
  expect(written([HEARD, SILENT])).toBe(2);
  expect(waiting([]).rows).toBeNull();
});

test("elements that run as one have one queue", () => {
  const [a, b, c] = ["g", "g", "h"].map((group) => element({ group, lag_rows: 7 }));
  expect(waiting([a!, b!, c!])).toEqual({ rows: 14 });
  expect(waiting([a!, b!], [c!], [c!])).toEqual({ rows: 21 });
});

test("how many rows wait is unknown if it is unknown of one element", () => {
  const [known, none] = [element({ lag_rows: 7 }), element({ status: "draft", lag_rows: null })];
  const unknown = element({
    group: "h",
    title: "Alarm",
    lag_rows: null,
    lag_unknown: "Its node sends no reports.",
  });
  expect(waiting([known, none])).toEqual({ rows: 7 });
  expect(waiting([known, unknown])).toEqual({ rows: null, why: "Alarm: Its node sends no reports." });
  const five = waiting(...Array.from({ length: 5 }, () => [unknown]));
  expect(five.why).toMatch(/And 2 more\.$/);
});
