import { describe, expect, test } from "vitest";
import {
  elementsOf,
  displayName,
  findElement,
  groupsOf,
  isApart,
  locate,
  placeOf,
} from "../../shared/document";
import * as edits from "../edits";
import { boxes, toEdges, toNodes } from "../flow";
import { layout } from "../layout";
import { mergeDocuments } from "../merge";
import type { PipelineDocument } from "../../shared/types";
import { DOCUMENT, OPERATORS } from "../../shared/tests/documents";

const filter = OPERATORS.get("filter")!;

describe("changing a document", () => {
  test("an added element has a fresh id, its defaults and a free place", () => {
    const first = edits.addElement(DOCUMENT, filter, { x: 3, y: 4 });
    const second = edits.addElement(first.document, filter, { x: 3, y: 4 });
    expect([first.id, second.id]).toEqual(["filter", "filter-2"]);
    const [a, b] = [first.id, second.id].map((id) => placeOf(findElement(second.document, id)!));
    expect(Math.abs(a!.y - b!.y)).toBeGreaterThanOrEqual(80);
    expect(edits.defaultParams(OPERATORS.get("csv-replay")!)).toEqual({ rate: 100 });
  });

  test("a removed element takes its connections and its place in a group along", () => {
    const after = edits.removeElements(DOCUMENT, ["big"]);
    expect(findElement(after, "file")).not.toHaveProperty("inputs");
    expect(groupsOf(after)).toEqual([{ id: "edge-part", elements: ["readings"] }]);
  });

  test("a rename follows into inputs and groups", () => {
    const after = edits.renameElement(DOCUMENT, "readings", "source");
    expect(findElement(after, "big")?.inputs).toEqual({ in: "source" });
    expect(groupsOf(after)[0]?.elements).toEqual(["source", "big"]);
  });

  test("a paste keeps connections among what was copied and cuts the others", () => {
    const copied = edits.copyElements(DOCUMENT, ["big", "file"]);
    const { document, ids } = edits.pasteElements(DOCUMENT, copied);
    expect(ids).toEqual(["big-2", "file-2"]);
    expect(findElement(document, "big-2")).not.toHaveProperty("inputs");
    expect(findElement(document, "file-2")?.inputs).toEqual({ in: "big-2" });
  });

  test("what is to be apart is said once for both, and follows renames, copies and removals", () => {
    const apart = edits.setApart(DOCUMENT, "big", "file", true);
    const [big, file] = ["big", "file"].map((id) => findElement(apart, id)!);
    expect(isApart(file!, big!)).toBe(true);
    expect(findElement(edits.renameElement(apart, "file", "sink"), "big")?.apart).toEqual(["sink"]);
    expect(findElement(edits.removeElements(apart, ["file"]), "big")).not.toHaveProperty("apart");
    const pasted = edits.pasteElements(apart, edits.copyElements(apart, ["big", "file"])).document;
    expect(findElement(pasted, "big-2")?.apart).toEqual(["file-2"]);
    expect(edits.copyElements(apart, ["big"])[0]).not.toHaveProperty("apart");
    expect(edits.setApart(apart, "file", "big", false)).toEqual(DOCUMENT);
  });

  test("what is pasted is no copy of its site's, and runs there all the same", () => {
    const copied = [{ id: "big", type: "filter", site: "Hall", copy_of: { part: "big", element: "big" } }];
    const { document } = edits.pasteElements(DOCUMENT, copied);
    expect(findElement(document, "big-2")).toMatchObject({ site: "Hall" });
    expect(findElement(document, "big-2")).not.toHaveProperty("copy_of");
  });

  test("a change never touches the document it came from", () => {
    const before = JSON.stringify(DOCUMENT);
    edits.connect(DOCUMENT, { element: "readings", port: "out" }, { element: "file", port: "in" });
    edits.moveElements(DOCUMENT, { big: { x: 1, y: 1 } });
    edits.groupElements(DOCUMENT, ["big", "file"]);
    expect(JSON.stringify(DOCUMENT)).toBe(before);
  });

  test("moving to the same place is no change", () => {
    expect(edits.moveElements(DOCUMENT, { big: { x: 320, y: 0 } })).toBe(DOCUMENT);
  });

  test("grouping takes elements out of their old groups; the last one out removes the group", () => {
    const grouped = edits.groupElements(DOCUMENT, ["readings", "big", "file"]);
    expect(groupsOf(grouped)).toEqual([{ id: "readings-group", elements: ["readings", "big", "file"] }]);
    expect(edits.ungroup(grouped, ["file"]).spec).not.toHaveProperty("groups");
  });

  test("an element without a title has its operator's, with its number", () => {
    expect(displayName({ id: "filter", type: "filter" }, filter)).toBe("Filter");
    expect(displayName({ id: "filter-2", type: "filter" }, filter)).toBe("Filter 2");
    expect(displayName({ id: "big", type: "filter" }, filter)).toBe("big");
    expect(displayName({ id: "big", type: "filter", title: "Big ones" }, filter)).toBe("Big ones");
  });

  test("a fault's path leads to its element", () => {
    expect(locate(DOCUMENT, "spec.elements[1].params.column")).toEqual({
      element: "big",
      path: "params.column",
    });
    expect(locate(DOCUMENT, "spec.elements[9].type").element).toBeNull();
  });
});

describe("drawing a document", () => {
  test("every connection is an edge that names its ports", () => {
    expect(
      toEdges(DOCUMENT, OPERATORS).map(({ source, sourceHandle, target, targetHandle }) => [
        source,
        sourceHandle,
        target,
        targetHandle,
      ]),
    ).toEqual([
      ["readings", "out", "big", "in"],
      ["big", "out", "file", "in"],
    ]);
  });

  test("connections survive document -> flow -> document", () => {
    let rebuilt = {
      ...DOCUMENT,
      spec: { ...DOCUMENT.spec, elements: elementsOf(DOCUMENT).map(({ inputs: _, ...rest }) => rest) },
    };
    for (const edge of toEdges(DOCUMENT, OPERATORS)) {
      rebuilt = edits.connect(
        rebuilt as never,
        { element: edge.source, port: edge.sourceHandle! },
        { element: edge.target, port: edge.targetHandle! },
      ) as never;
    }
    expect(toEdges(rebuilt as never, OPERATORS)).toEqual(toEdges(DOCUMENT, OPERATORS));
  });

  test("an unchanged element keeps its node object", () => {
    const first = toNodes(DOCUMENT, OPERATORS, [], new Set());
    const next = toNodes(
      edits.changeElement(DOCUMENT, "big", { title: "Big ones" }),
      OPERATORS,
      first,
      new Set(),
    );
    const find = (nodes: typeof first, id: string) => nodes.find((node) => node.id === id);
    expect(find(next, "file")).toBe(find(first, "file"));
    expect(find(next, "big")).not.toBe(find(first, "big"));
    expect(find(next, "big")?.ariaLabel).toBe("Big ones, Filter");
  });

  test("a group's box holds its cards", () => {
    const cards = toNodes(DOCUMENT, OPERATORS, [], new Set()).filter((node) => node.type === "card");
    const [box] = boxes(DOCUMENT, cards as never);
    expect(box!.position.x).toBeLessThan(0);
    expect(box!.position.x + box!.data.width).toBeGreaterThan(320 + 240);
  });

  test("the layout goes from left to right along the streams", () => {
    const places = layout(DOCUMENT);
    expect(places.readings!.x).toBeLessThan(places.big!.x);
    expect(places.big!.x).toBeLessThan(places.file!.x);
  });
});

describe("what came with a template and is to be replaced", () => {
  const marked: PipelineDocument = {
    ...DOCUMENT,
    spec: {
      ...DOCUMENT.spec,
      elements: elementsOf(DOCUMENT).map((element) =>
        element.id === "readings" ? { ...element, ui: { x: 0, y: 0, replace: true } } : element,
      ),
    },
  };
  const isMarked = (document: PipelineDocument) => !!findElement(document, "readings")?.ui?.replace;

  test("says so until its parameters or its type are changed", () => {
    expect(isMarked(edits.changeElement(marked, "readings", { params: { path: "upload:mine" } }))).toBe(
      false,
    );
    expect(isMarked(edits.changeElement(marked, "readings", { type: "kafka-in" }))).toBe(false);
    expect(findElement(edits.keepAsItIs(marked, "readings"), "readings")?.ui).toEqual({ x: 0, y: 0 });
  });

  test("says so wherever it is moved to, whatever it is called, and whatever is done to others", () => {
    expect(isMarked(edits.moveElements(marked, { readings: { x: 50, y: 60 } }))).toBe(true);
    expect(isMarked(edits.changeElement(marked, "readings", { title: "Hall 1", node: "edge-a" }))).toBe(true);
    expect(isMarked(edits.changeElement(marked, "big", { params: {} }))).toBe(true);
  });

  test("says so on its card, in words too, while it is drawn", () => {
    const card = (live: boolean) =>
      toNodes(marked, OPERATORS, [], new Set(), live).find(({ id }) => id === "readings");
    expect(card(false)?.ariaLabel).toBe("readings, CSV replay, Your source goes here");
    expect(card(true)?.ariaLabel).toBe("readings, CSV replay");
  });

  test("stands in the row of those without a place if its mark is all that is said of it", () => {
    const bare = edits.changeElement(marked, "readings", { ui: { replace: true } });
    expect(toNodes(bare, OPERATORS, [], new Set()).map(({ position }) => position.x)).not.toContain(
      undefined,
    );
    expect(findElement(bare, "readings")?.ui).toEqual({ replace: true });
  });

  test("says so after a merge only if neither side has changed it", () => {
    const moved = edits.moveElements(marked, { readings: { x: 9, y: 9 } });
    const changed = edits.changeElement(marked, "readings", { params: { path: "upload:mine" } });
    const merged = mergeDocuments(marked, moved, changed);
    expect(merged.conflicts).toEqual([]);
    expect(findElement(merged.document, "readings")).toMatchObject({
      params: { path: "upload:mine" },
      ui: { x: 9, y: 9 },
    });
    expect(isMarked(merged.document)).toBe(false);
    expect(isMarked(mergeDocuments(marked, changed, moved).document)).toBe(false);
    expect(isMarked(mergeDocuments(marked, moved, edits.removeElements(marked, ["file"])).document)).toBe(
      true,
    );
  });
});
