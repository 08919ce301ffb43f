import { expect, test } from "vitest";
import type { PipelineDocument } from "../../shared/types";
import { rowsOf } from "../inspector/inspected";
import { pathKey, shownWords } from "../preview/path";

const document = (change: object = {}, other: object = {}): PipelineDocument =>
  ({
    apiVersion: "fogline/v1",
    kind: "Pipeline",
    metadata: { name: "p" },
    spec: {
      elements: [
        { id: "in", type: "generator", params: { rate: 1 }, ...change },
        { id: "few", type: "filter", inputs: { in: "in.out" }, params: { condition: "n > 1" } },
        { id: "other", type: "live-table", inputs: { in: "in" }, ...other },
      ],
    },
  }) as PipelineDocument;

test("a preview is asked for again when the element or one before it changes", () => {
  const before = pathKey(document(), "few");
  expect(pathKey(document({ params: { rate: 2 } }), "few")).not.toBe(before);
  expect(pathKey(document({ type: "csv-replay" }), "few")).not.toBe(before);
});

test("a preview is not asked for again when a card moves, has another name or node, or another branch changes", () => {
  const before = pathKey(document(), "few");
  expect(pathKey(document({ ui: { x: 1 }, title: "A", node: "edge-a" }), "few")).toBe(before);
  expect(pathKey(document({}, { params: { rows: 3 } }), "few")).toBe(before);
});

test("a cycle ends", () => {
  expect(pathKey(document({ inputs: { in: "few" } }), "few")).toContain("generator");
});

test("it says how many of how many rows are shown", () => {
  expect(shownWords(0, 0, false)).toBe("No rows");
  expect(shownWords(7, 7, false)).toBe("All 7 rows");
  expect(shownWords(20, 2200, false)).toBe("The first 20 of 2,200 rows");
  expect(shownWords(20, 1834, true)).toBe("The newest 20 of 1,834 rows");
});

test("the next element shows the same rows, unless they are pinned to another one or nothing runs", () => {
  expect(rowsOf("running", false, true)).toBe("running");
  expect(rowsOf("running", false, false)).toBe("source");
  expect(rowsOf("running", true, true)).toBe("pinned");
});
