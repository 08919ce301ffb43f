import { describe, expect, test } from "vitest";
import { DOCUMENT, OPERATORS } from "./documents";
import type { PipelineDocument } from "../types";
import { BOX, drawnOf, pictureOf } from "../pipeline-picture";
import { elementsOf } from "../document";

const numbers = (path: string) => [...path.matchAll(/-?[\d.]+/g)].map(([number]) => Number(number));

describe("the picture of a pipeline", () => {
  test("has a box for each element where it lies, with its name and kind", () => {
    const { boxes } = pictureOf(drawnOf(DOCUMENT, OPERATORS));
    expect(boxes.map(({ id, title, category, x, y }) => [id, title, category, x, y])).toEqual([
      ["readings", "readings", "sources", 0, 0],
      ["big", "big", "transform", 320, 0],
      ["file", "file", "sinks", 640, 0],
    ]);
  });

  test("a stream leads from the right side of one box to the left side of the other", () => {
    const { streams } = pictureOf(drawnOf(DOCUMENT, OPERATORS));
    expect(streams.map(({ key }) => key)).toEqual(["readings>big.0", "big>file.0"]);
    const path = numbers(streams[0]?.path ?? "");
    expect(path.slice(0, 2)).toEqual([BOX.width, BOX.height / 2]);
    expect(path.slice(-2)).toEqual([320, BOX.height / 2]);
  });

  test("two inputs of one element end apart, and one that reads nothing that is there is not drawn", () => {
    const joined: PipelineDocument = {
      ...DOCUMENT,
      spec: {
        elements: [
          ...elementsOf(DOCUMENT),
          { id: "both", type: "join", inputs: { left: "readings", right: "big" }, ui: { x: 640, y: 200 } },
          { id: "lost", type: "filter", inputs: { in: "nothing" }, ui: { x: 0, y: 400 } },
        ],
      },
    };
    const { streams } = pictureOf(drawnOf(joined, OPERATORS));
    const ends = streams.filter(({ key }) => key.includes(">both")).map(({ path }) => numbers(path).at(-1));
    expect(ends).toHaveLength(2);
    expect(new Set(ends).size).toBe(2);
    expect(streams.some(({ key }) => key.includes("lost"))).toBe(false);
  });

  test("all of it is in sight, also what lies left of and above the origin, and what has no place", () => {
    const elements = [
      { id: "far", type: "filter", ui: { x: -500, y: -300 } },
      { id: "placeless", type: "unknown" },
    ];
    const { boxes, view } = pictureOf(drawnOf({ ...DOCUMENT, spec: { elements } }, OPERATORS));
    for (const { x, y } of boxes) {
      expect(x).toBeGreaterThan(view.x);
      expect(y).toBeGreaterThan(view.y);
      expect(x + BOX.width).toBeLessThan(view.x + view.width);
      expect(y + BOX.height).toBeLessThan(view.y + view.height);
    }
    expect(pictureOf([]).view.width).toBeGreaterThan(0);
  });
});
