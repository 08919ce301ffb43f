import { expect, test, vi } from "vitest";
import { Asker } from "../asker";

/** A server whose answers are given by hand, in whichever order. */
function slowServer() {
  const asked: { signal: AbortSignal; answer: (text: string) => void; fail: (error: Error) => void }[] = [];
  const load = (signal: AbortSignal) =>
    new Promise<string>((answer, fail) => {
      asked.push({ signal, answer, fail });
      signal.addEventListener("abort", () => fail(signal.reason as Error));
    });
  const told: string[] = [];
  const take = (text: string) => told.push(text);
  const fail = (error: unknown) => told.push((error as Error).message);
  return { asked, told, question: [load, take, fail] as const };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("an answer that takes longer than the interval is waited for, and then it is asked again", async () => {
  const { asked, told, question } = slowServer();
  const asker = new Asker();
  for (let tick = 0; tick < 6; tick += 1) asker.again(...question);
  expect(asked).toHaveLength(1);
  asked[0]?.answer("at last");
  await settled();
  asker.again(...question);
  expect(told).toEqual(["at last"]);
  expect(asked).toHaveLength(2);
});

test("after a failure it is asked again", async () => {
  const { asked, told, question } = slowServer();
  const asker = new Asker();
  asker.again(...question);
  asked[0]?.fail(new Error("503"));
  await settled();
  asker.again(...question);
  expect(told).toEqual(["503"]);
  expect(asked).toHaveLength(2);
});

test("an answer that never comes is a failure", async () => {
  const { asked, told, question } = slowServer();
  const asker = new Asker(1);
  asker.again(...question);
  await vi.waitFor(() => expect(told).toHaveLength(1));
  asker.again(...question);
  expect(asked).toHaveLength(2);
});

test("a new question drops the earlier one: only the newer answer is taken", async () => {
  const { asked, told, question } = slowServer();
  const asker = new Asker();
  asker.ask(...question);
  asker.ask(...question);
  expect(asked[0]?.signal.aborted).toBe(true);
  asked[1]?.answer("new");
  asked[0]?.answer("old");
  await settled();
  asker.ask(...question);
  asker.stop();
  await settled();
  expect(told).toEqual(["new"]);
});
