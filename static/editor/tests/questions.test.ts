import { expect, test, vi } from "vitest";
import type { ConnectionTested } from "../../shared/types";
import type { Branch } from "../browse/found";
import { Questions, type Question } from "../browse/questions";

/** A node whose answers are given by hand. */
function slowNode() {
  const asked: { question: Question; answer: (words: string) => void; fail: (error: Error) => void }[] = [];
  const questions = new Questions(
    (question) =>
      new Promise((resolve, fail) => {
        const answer = (words: string) =>
          resolve({ works: true, words, found: [] } as unknown as ConnectionTested);
        asked.push({ question, answer, fail });
      }),
  );
  const told: string[] = [];
  const take = ({ state, words }: Branch) => told.push(state === "there" ? words : state);
  const waitFor = (count: number) => vi.waitFor(() => expect(asked).toHaveLength(count));
  return { asked, questions, told, take, waitFor };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("a late answer of an older search does not replace what the newer one tells", async () => {
  const { asked, questions, told, take, waitFor } = slowNode();
  questions.search("old", take);
  await waitFor(1);
  questions.search("new", take);
  asked[0]?.answer("old");
  await waitFor(2);
  expect(told).toEqual(["asking", "asking"]);
  asked[1]?.answer("new");
  await settled();
  expect(told).toEqual(["asking", "asking", "new"]);
});

test("the failure of an older search is not told, and a search that waits is not made", async () => {
  const { asked, questions, told, take, waitFor } = slowNode();
  questions.search("first", take);
  await waitFor(1);
  questions.search("second", take);
  questions.search("third", take);
  asked[0]?.fail(new Error("away"));
  await waitFor(2);
  asked[1]?.answer("third");
  await settled();
  expect(asked.map(({ question }) => question.find)).toEqual(["first", "third"]);
  expect(told).toEqual(["asking", "asking", "asking", "third"]);
});

test("a search that was ended tells nothing, and what was looked into is told", async () => {
  const { asked, questions, told, take, waitFor } = slowNode();
  questions.search("pump", take);
  await waitFor(1);
  questions.look("Press", [], take);
  questions.endSearch();
  asked[0]?.answer("pump");
  await waitFor(2);
  asked[1]?.answer("Press");
  await settled();
  expect(told).toEqual(["asking", "asking", "Press"]);
});

test("questions go one after the other, and none is told after the end", async () => {
  const { asked, questions, told, take, waitFor } = slowNode();
  questions.look("", [], take);
  questions.look("Press", [], take);
  await waitFor(1);
  await settled();
  expect(asked).toHaveLength(1);
  questions.end();
  asked[0]?.answer("all");
  await settled();
  expect(asked).toHaveLength(1);
  expect(told).toEqual(["asking", "asking"]);
});
