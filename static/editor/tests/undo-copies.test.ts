import { describe, expect, test } from "vitest";
import { elementsOf } from "../../shared/document";
import { changeElement, moveElements } from "../edits";
import { push, redo, start, undo, type History } from "../../shared/history";
import { pack, unpack } from "../undo-copies";
import { DOCUMENT } from "../../shared/tests/documents";

/** n steps, each of another title. */
function steps(n: number): History<typeof DOCUMENT> {
  let history = start(DOCUMENT);
  for (let step = 1; step <= n; step += 1)
    history = push(history, changeElement(history.present, "big", { title: `Step ${step}` }), step);
  return history;
}

const title = (document: typeof DOCUMENT) => elementsOf(document)[1]!.title;
/** As the server gives it: equal, and another object. */
const fromServer = (document: typeof DOCUMENT) => JSON.parse(JSON.stringify(document)) as typeof DOCUMENT;

describe("undo after a reload", () => {
  test("goes back and forth through the steps of before", () => {
    const history = undo(undo(steps(5)));
    const kept = unpack(pack(history, 1)!, fromServer(history.present))!;
    expect(title(kept.present)).toBe("Step 3");
    expect(title(redo(redo(kept)).present)).toBe("Step 5");
    expect(undo(undo(undo(kept))).present).toEqual(DOCUMENT);
  });

  test("has every step forth, however few there are back", () => {
    const history = undo(undo(undo(undo(steps(5)))));
    const kept = unpack(pack(history, 1)!, fromServer(history.present))!;
    expect(title(redo(redo(redo(redo(kept)))).present)).toBe("Step 5");
  });

  test("goes on where the draft has followed what was moved meanwhile", () => {
    const pinned = (node: string) => changeElement(DOCUMENT, "big", { node });
    const history = push(
      start(pinned("edge-a")),
      changeElement(pinned("edge-a"), "big", { title: "Mine" }),
      1,
    );
    const moved = changeElement(history.present, "big", { node: "edge-b" });
    const kept = unpack(pack(history, 1)!, fromServer(moved))!;
    expect(kept.present).toEqual(moved);
    expect(undo(kept).present).toEqual(pinned("edge-b"));
  });

  test("is not offered for another draft", () => {
    const text = pack(steps(3), 1)!;
    expect(unpack(text, moveElements(steps(3).present, { big: { x: 9, y: 9 } }))).toBeNull();
  });

  test("keeps the newest steps when there are more than there is room for", () => {
    const history = steps(100);
    const room = pack(history, 1)!.length / 3;
    const text = pack(history, 1, room)!;
    expect(text.length).toBeLessThanOrEqual(room);
    const kept = unpack(text, history.present)!;
    expect(kept.past.length).toBeGreaterThan(5);
    expect(title(undo(kept).present)).toBe("Step 99");
    expect(pack(history, 1, 10)).toBeNull();
  });

  test("an element that a step leaves alone is kept once", () => {
    const text = pack(steps(50), 1)!;
    expect(text.match(/"id":"file"/g)).toHaveLength(1);
  });
});
