import { beforeEach, expect, test, vi } from "vitest";
import { follow } from "../follow";
import { closeImport, useImport } from "../import-store";
import type { FileState } from "../types";
import { FILE } from "./fixtures";

let states: FileState[] = [];

beforeEach(() => {
  closeImport();
  vi.stubGlobal("window", { setTimeout });
  vi.stubGlobal("fetch", async () => new Response(JSON.stringify({ ...FILE, state: states.shift() })));
});

test("what can be read in two ways is opened as soon as the file is looked at", async () => {
  states = ["looking", "looking", "asks"];
  await follow(FILE.id, null, 1);
  expect(useImport.getState().file).toBe(FILE.id);
});

test("what only the whole file shows opens nothing by itself, and neither does a file that is read", async () => {
  states = ["looking", "importing", "asks"];
  await follow(FILE.id, null, 1);
  expect(useImport.getState().file).toBe(null);
  states = ["importing", "imported"];
  await follow(FILE.id, null, 1);
  expect([useImport.getState().file, states]).toEqual([null, []]);
});
