import { expect, test } from "vitest";
import { elementsOf } from "../../shared/document";
import { DOCUMENT, OPERATORS } from "../../shared/tests/documents";
import { random } from "../../shared/tests/random";
import type { Pipeline, PipelineDocument } from "../../shared/types";
import * as edits from "../edits";
import { drop } from "../lanes/dropping";
import { ANYWHERE, draftLane, nodeLane, siteLane } from "../lanes/lies";
import {
  commit,
  current,
  duplicateSelected,
  open,
  redo,
  removeSelected,
  select,
  toggleGroup,
  undo,
  useEditor,
} from "../store";

const EDITS = 100;
const LANES = [nodeLane("edge-a"), nodeLane("edge-b"), siteLane("hall"), ANYWHERE];

/** One edit as people make it, on the canvas or in lanes. It may change nothing. */
function edit(below: (limit: number) => number): void {
  const pick = <T>(items: readonly T[]): T | undefined => items[below(items.length || 1)];
  const ids = elementsOf(current()).map(({ id }) => id);
  const some = ids.filter(() => below(3) === 0);
  const id = pick(ids) ?? "";
  const other = pick(ids) ?? "";
  const at = { x: below(2000), y: below(1000) };
  const lead = some[0] ?? id;
  const made: (() => PipelineDocument | void)[] = [
    () => edits.addElement(current(), pick([...OPERATORS.values()])!, at).document,
    () => edits.addElement(current(), pick([...OPERATORS.values()])!, at).document,
    () => edits.moveElements(current(), { [id]: at }),
    () => edits.changeElement(current(), id, { params: { column: `c${below(9)}` } }),
    () => edits.changeElement(current(), id, { title: below(2) ? `T${below(9)}` : "" }),
    () => edits.connect(current(), { element: other, port: "out" }, { element: id, port: "in" }),
    () => edits.disconnect(current(), { element: id, port: "in" }),
    () => edits.renameElement(current(), id, edits.freshId(ids, `r${below(5)}`)),
    () => edits.setApart(current(), id, other, below(2) === 0),
    () => (select(some), toggleGroup()),
    () => (select([id]), duplicateSelected()),
    () => (select([id]), removeSelected()),
    // in lanes: to a node, to a site, or to none; elements that run as one go together
    () => drop({ units: [{ lead, members: some.length ? some : [id] }], over: pick(LANES)!, stage: "held" }),
    () => drop({ units: [{ lead, members: some.length ? some : [id] }], over: pick(LANES)!, stage: "held" }),
  ];
  const changed = pick(made)!();
  if (changed) commit(changed);
}

/** The document, and what is drawn of it: cards, streams and the lanes in which elements lie. */
function seen(): string {
  const { nodes, edges } = useEditor.getState();
  return JSON.stringify({
    document: current(),
    cards: nodes.map(({ id, position }) => [id, position]),
    streams: edges.map(({ id, source, target }) => [id, source, target]),
    lanes: elementsOf(current()).map((element) => draftLane(element, false)),
  });
}

test.each(Array.from({ length: 20 }, (_, seed) => seed))(
  "100 random edits are undone and redone step by step, in lanes too (seed %i)",
  (seed) => {
    const below = random(seed + 1);
    open({ name: "demo", document: structuredClone(DOCUMENT) } as Pipeline, [...OPERATORS.values()]);
    const states = [seen()];
    while (states.length <= EDITS) {
      const before = current();
      edit(below);
      if (current() !== before) states.push(seen());
    }
    for (const state of [...states].reverse().slice(1)) {
      undo();
      expect(seen()).toBe(state);
    }
    expect(JSON.parse(seen())).toHaveProperty("document", DOCUMENT);
    for (const state of states.slice(1)) {
      redo();
      expect(seen()).toBe(state);
    }
  },
);
