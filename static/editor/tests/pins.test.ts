import { describe, expect, test } from "vitest";
import type { PipelineDocument } from "../../shared/types";
import { elementsOf } from "../../shared/document";
import { changeElement, moveElements } from "../edits";
import { mapped, push, start, undo } from "../../shared/history";
import { elsewhereMark, homeWords, waysHome, repinned, repinsOf, repinWords } from "../pins";
import { DOCUMENT } from "../../shared/tests/documents";

const pinned = (document: PipelineDocument, id: string, node: string) =>
  changeElement(document, id, { node });
const BEFORE = pinned(DOCUMENT, "big", "edge-a");
const AFTER = pinned(DOCUMENT, "big", "edge-b");

describe("pins that changed", () => {
  test("are told when that is all that changed", () => {
    expect(repinsOf(BEFORE, AFTER)).toEqual([{ id: "big", from: "edge-a", to: "edge-b" }]);
    expect(repinsOf(BEFORE, BEFORE)).toBeNull();
    expect(repinsOf(DOCUMENT, AFTER)).toBeNull();
    expect(repinsOf(BEFORE, DOCUMENT)).toBeNull();
    expect(repinsOf(BEFORE, changeElement(AFTER, "big", { title: "Other" }))).toBeNull();
  });

  test("are told, too, where only what is shown has places", () => {
    const unplaced = {
      ...AFTER,
      spec: { ...AFTER.spec, elements: elementsOf(AFTER).map((element) => ({ ...element, ui: null })) },
    };
    expect(repinsOf(BEFORE, unplaced)).toEqual([{ id: "big", from: "edge-a", to: "edge-b" }]);
    expect(repinsOf(BEFORE, moveElements(AFTER, { big: { x: 9, y: 9 } }))).toBeNull();
  });

  test("are taken over only where exactly the old place was pinned", () => {
    const repins = repinsOf(BEFORE, AFTER) ?? [];
    expect(repinned(BEFORE, repins)).toEqual(AFTER);
    const elsewhere = pinned(DOCUMENT, "big", "cloud");
    expect(repinned(elsewhere, repins)).toBe(elsewhere);
    expect(repinned(DOCUMENT, repins)).toBe(DOCUMENT);
  });

  test("do not take part in undo: what the user did is what undo takes back", () => {
    const repins = repinsOf(BEFORE, AFTER) ?? [];
    const titled = push(start(BEFORE), changeElement(BEFORE, "big", { title: "Mine" }), 1);
    const moved = mapped(titled, (document) => repinned(document, repins));
    expect(moved.present).toEqual(changeElement(AFTER, "big", { title: "Mine" }));
    expect(undo(moved).present).toEqual(AFTER);
  });

  test("are said in words", () => {
    const words = repinWords(repinsOf(BEFORE, AFTER) ?? [], (id) => `The ${id}`);
    expect(words).toBe("The draft now pins The big to edge-b");
  });
});

describe("what runs elsewhere than where it belongs", () => {
  const one = {
    element: "big",
    home: "edge-a",
    pinned: true,
    node: "edge-b",
    why: "edge-a was drained",
    at: null,
  };
  const name = (id: string) => `The ${id}`;

  test("is a mark with the reason", () => {
    expect(elsewhereMark([one], name)).toBe("The big runs elsewhere");
    expect(elsewhereMark([one, { ...one, element: "file" }], name)).toBe("2 run elsewhere");
    expect(homeWords(one, 1)).toBe("The draft pins it to edge-a");
    expect(homeWords({ ...one, pinned: false }, 2)).toBe("Before, they ran on edge-a");
  });

  test("goes home with all that run as one with it, by one move", () => {
    const all = ["big", "small", "file"].map((element) => ({ ...one, element }));
    const ways = waysHome(
      all,
      (element) => (element === "file" ? "file" : "edge-part"),
      (element) => (element === "file" ? "The node does not answer." : null),
    );
    expect(ways.map(({ element, together, refused }) => [element, together.length, refused])).toEqual([
      ["big", 2, null],
      ["file", 1, "The node does not answer."],
    ]);
  });
});
