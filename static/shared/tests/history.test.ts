import { expect, test } from "vitest";
import { DEPTH_MAX, JOIN_MS, push, redo, start, undo } from "../history";

test("undo and redo walk the same values back and forth", () => {
  let history = push(push(start(1), 2, 0), 3, 0);
  history = undo(undo(history));
  expect(history.present).toBe(1);
  expect(undo(history)).toBe(history);
  history = redo(redo(history));
  expect(history.present).toBe(3);
  expect(redo(history)).toBe(history);
});

test("a change after an undo drops what was undone", () => {
  const history = push(undo(push(start("a"), "b", 0)), "c", 0);
  expect(history.future).toEqual([]);
  expect(undo(history).present).toBe("a");
});

test("keystrokes in one field are one step, until a pause", () => {
  let history = push(start(""), "p", 0, "title");
  history = push(history, "po", 200, "title");
  expect(undo(history).present).toBe("");
  history = push(history, "pow", 200 + JOIN_MS, "title");
  expect(undo(history).present).toBe("po");
});

test("changes of two fields never join", () => {
  const history = push(push(start(0), 1, 0, "a"), 2, 1, "b");
  expect(undo(history).present).toBe(1);
});

test("a change that joins never swallows the state before an undo", () => {
  const history = push(undo(push(push(start(0), 1, 0, "a"), 2, 5000, "a")), 3, 5001, "a");
  expect(undo(history).present).toBe(1);
});

test("memory is bounded", () => {
  let history = start(0);
  for (let value = 1; value <= DEPTH_MAX * 2; value += 1) history = push(history, value, 0);
  expect(history.past).toHaveLength(DEPTH_MAX);
});
