import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DrawQueue } from "../ui/draw-queue";

const [A, B] = [{}, {}];
let drawn: string[] = [];

/** A drawing that takes so long, ms. */
const drawing =
  (name: string, ms = 0) =>
  async () => {
    await new Promise((done) => setTimeout(done, ms));
    drawn.push(name);
  };

beforeEach(() => {
  drawn = [];
  vi.useFakeTimers();
});

afterEach(() => vi.useRealTimers());

test("what is out of date before it was drawn is not drawn", async () => {
  const queue = new DrawQueue();
  queue.add(A, drawing("a1", 100));
  for (const name of ["a2", "a3", "a4"]) queue.add(A, drawing(name, 100));
  queue.add(B, drawing("b1", 100));
  await vi.advanceTimersByTimeAsync(2000);
  expect(drawn).toEqual(["a4", "b1"]);
});

test("drawings leave more time than they take", async () => {
  const queue = new DrawQueue();
  const again = () => {
    drawn.push("a");
    queue.add(A, async () => {
      await new Promise((done) => setTimeout(done, 100));
      again();
    });
  };
  again();
  await vi.advanceTimersByTimeAsync(3050);
  expect(drawn.length).toBeLessThanOrEqual(12);
  expect(drawn.length).toBeGreaterThanOrEqual(10);
});

test("what somebody waits for needs no pause", async () => {
  const queue = new DrawQueue();
  queue.add(A, drawing("a1", 500));
  await vi.advanceTimersByTimeAsync(510);
  queue.add(A, drawing("a2"));
  await vi.advanceTimersByTimeAsync(10);
  expect(drawn).toEqual(["a1"]);
  queue.add(A, drawing("a3"), true);
  await vi.advanceTimersByTimeAsync(10);
  expect(drawn).toEqual(["a1", "a3"]);
});

test("nor does it wait for what nobody waits for", async () => {
  const queue = new DrawQueue();
  queue.add(A, drawing("a1", 500));
  await vi.advanceTimersByTimeAsync(100);
  queue.add(A, drawing("a2", 500));
  queue.add(B, drawing("b", 100), true);
  await vi.advanceTimersByTimeAsync(510);
  expect(drawn).toEqual(["a1", "b"]);
});

test("one that fails keeps no other from being drawn", async () => {
  const told = vi.spyOn(console, "warn").mockReturnValue();
  const queue = new DrawQueue();
  queue.add(A, () => Promise.reject(new Error("no")));
  queue.add(B, drawing("b"));
  await vi.advanceTimersByTimeAsync(100);
  expect(drawn).toEqual(["b"]);
  expect(told).toHaveBeenCalledOnce();
});
