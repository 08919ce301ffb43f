import { beforeEach, expect, test, vi } from "vitest";
import { Asker } from "../../shared/asker";
import { elementsOf, findElement } from "../../shared/document";
import { DOCUMENT, OPERATORS } from "../../shared/tests/documents";
import type { Pipeline } from "../../shared/types";
import { takeOver } from "../browse/take-over";
import { current, open, undo } from "../store";

/** Gives the answer by hand, and also to one who has given up. */
let answer: (response: Response) => void;
const told: string[] = [];
const asker = new Asker();

const params = () => findElement(current(), "big")?.params;
const settled = () => new Promise((resolve) => setImmediate(resolve));
const taken = () => new Response(JSON.stringify({ params: { column: "taken" } }));

beforeEach(() => {
  told.length = 0;
  vi.stubGlobal("fetch", () => new Promise((resolve) => (answer = resolve)));
  open({ name: "demo", document: DOCUMENT } as Pipeline, [...OPERATORS.values()]);
  const element = elementsOf(DOCUMENT)[1]!;
  takeOver(
    asker,
    { connection: "plant", element, columns: [], ticked: [] },
    () => told.push("done"),
    () => told.push("failed"),
  );
});

test("what was taken over is in the draft, and is one step of undo", async () => {
  answer(taken());
  await vi.waitFor(() => expect(told).toEqual(["done"]));
  expect(params()).toEqual({ column: "taken" });
  undo();
  expect(current()).toEqual(DOCUMENT);
});

test("an answer after Cancel changes nothing", async () => {
  asker.stop();
  answer(taken());
  await settled();
  await settled();
  expect(told).toEqual([]);
  expect(current()).toBe(DOCUMENT);
});

test("a refusal is told, and changes nothing", async () => {
  answer(new Response("{}", { status: 422 }));
  await vi.waitFor(() => expect(told).toEqual(["failed"]));
  expect(current()).toBe(DOCUMENT);
});
