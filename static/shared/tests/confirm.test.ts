import { expect, test } from "vitest";
import { meanwhile, usePending } from "../ui/confirm";

const question = () => usePending.getState().question;

test("what is found out before a question is said until it is known", async () => {
  let found: (n: number) => void = () => undefined;
  const result = meanwhile(
    "Counting",
    "It takes a while.",
    () => new Promise<number>((done) => (found = done)),
  );
  expect(question()).toMatchObject({ title: "Counting", action: null });
  found(3);
  expect(await result).toBe(3);
  expect(question()).toBeNull();
});

test("whoever gives up meanwhile ends the work, and gets no answer and no error", async () => {
  const aborted = (signal: AbortSignal) =>
    new Promise<number>((_, fail) => signal.addEventListener("abort", () => fail(new Error("aborted"))));
  const result = meanwhile("Counting", "", aborted);
  usePending.getState().answer(false);
  expect(await result).toBeNull();
  expect(question()).toBeNull();
});

test("an error is the caller's to tell, and nothing stays open", async () => {
  await expect(meanwhile("Counting", "", () => Promise.reject(new Error("away")))).rejects.toThrow("away");
  expect(question()).toBeNull();
});
