import { expect, test } from "vitest";
import type { Queue } from "../../shared/types";
import { element } from "../../shared/tests/fixtures";
import { edgeFigures, NO_SEARCH, queuePath, queueWords } from "../live/queue-words";

const queue = (waits: boolean[], change: Partial<Queue> = {}): Queue => ({
  stream: "a.out",
  columns: null,
  known: true,
  records: waits.map((each, offset) => ({
    partition: 0,
    offset,
    at: null,
    key: null,
    value: {},
    waits: each,
  })),
  looked: 2000,
  more: false,
  ...change,
});

test("it asks for the reader's queue, and for what is searched", () => {
  expect(queuePath("p", "a.out", "b", NO_SEARCH)).toBe("/pipelines/p/streams/a.out/queue?reader=b&limit=50");
  const asked = queuePath("p", "a.out", "b", { key: "m 1", text: "x&y", from: "2026-11-28T10:00:00" });
  expect(asked).toContain("&key=m+1&text=x%26y&from_ms=");
  expect(queuePath("p", "a.out", "b", { ...NO_SEARCH, from: "soon" })).not.toContain("from_ms");
});

test("it says what was read and what waits", () => {
  expect(queueWords(queue([false, true]), NO_SEARCH)).toContain("has not finished 1 row yet.");
  expect(queueWords(queue([false]), NO_SEARCH)).toContain("has finished all rows.");
  expect(queueWords(queue([true, true]), NO_SEARCH)).toBe("Its reader has finished none of these rows yet.");
  expect(queueWords(queue([false], { known: false }), NO_SEARCH)).toContain("is not known");
  expect(queueWords(queue([false], { more: true }), { ...NO_SEARCH, key: "a" })).toBe(
    "1 row of the newest 2,000; others were not looked through.",
  );
});

test("an edge says rows, bytes, what waits and the latency, as far as they are known", () => {
  const producer = element({ rows_out_per_s: 98, bytes_out_per_s: 4100 });
  const consumer = element({ lag_rows: 3, latency_ms_p95: 120 });
  expect(edgeFigures(producer, consumer)).toEqual(["98 rows/s", "4.1 KB/s", "3 wait", "120 ms"]);
  expect(edgeFigures({ ...producer, bytes_out_per_s: null }, null)).toEqual(["98 rows/s"]);
  expect(edgeFigures(producer, { ...consumer, lag_rows: 0 })).toContain("nothing waits");
});
