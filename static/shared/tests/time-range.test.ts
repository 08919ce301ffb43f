import { describe, expect, test } from "vitest";
import { rangeOf, scaled, shifted, spanOf, within } from "../time-range";

const NOW = Date.parse("2026-11-23T12:00:00Z");
const MINUTE = 60_000;
const FOLLOWING = { minutes: 15, held: null };
const HELD = { minutes: 15, held: { from: NOW - 4 * MINUTE, to: NOW - 2 * MINUTE } };

describe("the range of time of a page", () => {
  test("an address holds it, or says how far back it goes", () => {
    const link = "from=2026-11-23T11:56:00.000Z&to=2026-11-23T11:58:00.000Z&range=15";
    expect(rangeOf(new URLSearchParams(link))).toEqual(HELD);
    expect(rangeOf(new URLSearchParams("range=15"))).toEqual(FOLLOWING);
  });

  test.each(["range=7", "from=yesterday&to=now", "from=2026-11-23T12:00:00Z&to=2026-11-23T11:00:00Z", ""])(
    "an address that says nothing sound (%s) is of the last 5 min",
    (link) => {
      expect(rangeOf(new URLSearchParams(link))).toEqual({ minutes: 5, held: null });
    },
  );

  test("what is held stays, and what follows goes up to now", () => {
    expect(spanOf(HELD, NOW + MINUTE)).toEqual(HELD.held);
    expect(spanOf(FOLLOWING, NOW + MINUTE)).toEqual({ from: NOW - 14 * MINUTE, to: NOW + MINUTE });
  });

  test("earlier and later go by half of it; later than now is now", () => {
    const earlier = shifted(FOLLOWING, -1, NOW);
    expect(earlier).toEqual({ from: NOW - 22.5 * MINUTE, to: NOW - 7.5 * MINUTE });
    expect(shifted({ minutes: 15, held: earlier }, 1, NOW)).toBeNull();
    expect(shifted(HELD, 1, NOW)).toEqual({ from: NOW - 3 * MINUTE, to: NOW - MINUTE });
  });

  test("closer and wider are about its middle, and wider is not of what is to come", () => {
    expect(scaled(HELD, 0.5, NOW)).toEqual({ from: NOW - 3.5 * MINUTE, to: NOW - 2.5 * MINUTE });
    expect(scaled(HELD, 2, NOW)).toEqual({ from: NOW - 5 * MINUTE, to: NOW - MINUTE });
    expect(scaled(FOLLOWING, 0.5, NOW)).toEqual({ from: NOW - 7.5 * MINUTE, to: NOW });
    expect(scaled(FOLLOWING, 2, NOW)).toEqual({ from: NOW - 30 * MINUTE, to: NOW });
    expect(scaled({ minutes: 5, held: { from: NOW - 3_000, to: NOW } }, 0.5, NOW)).toBeNull();
  });
});

describe("the points of a span", () => {
  const points = [0, 1, 2, 3, 4, 5].map((t) => ({ t }));
  const times = (from: number, to: number) => within(points, { from, to }).map(({ t }) => t);

  test("have one at each side, so that lines reach its edges", () => {
    expect(times(2, 3)).toEqual([1, 2, 3, 4]);
    expect(times(0, 9)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test("that lies before or behind all of them has at most the nearest", () => {
    expect(times(7, 9)).toEqual([5]);
    expect(times(-3, -1)).toEqual([0]);
    expect(within([], { from: 0, to: 1 })).toEqual([]);
  });
});
