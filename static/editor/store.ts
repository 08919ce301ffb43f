/** What the editor shows and changes. Every change of the document goes through `commit`. */
import type { NodeChange } from "@xyflow/react";
import { applyNodeChanges } from "@xyflow/react";
import { create } from "zustand";
import { remember } from "../shared/address";
import { sentence } from "../shared/format";
import { mayAct } from "../shared/page";
import type {
  DocElement,
  DocNote,
  Fault,
  Operator,
  Pipeline,
  PipelineDocument,
  StreamSchema,
} from "../shared/types";
import { elementsOf, emptyDocument, groupOf, locate } from "../shared/document";
import * as edits from "./edits";
import type { Mark, StreamMark } from "./difference";
import { behind, sized, toEdges, toNodes, type CardNode, type FlowNode, type StreamEdge } from "./flow";
import * as past from "../shared/history";
import { openTab, PARAMETERS } from "./inspector/inspected";
import { notesAround, pasteNotes } from "./notes/notes";
import { arranged, type Arrangement, type Point } from "./places";

type Mode = "edit" | "live";

export type SaveState =
  | { state: "saved"; at: number | null }
  | { state: "dirty" }
  | { state: "saving" }
  | { state: "failed"; why: string }
  | { state: "deleted" }
  | { state: "conflict"; theirs: PipelineDocument; revision: number };

export interface LookedAt {
  document: PipelineDocument;
  marks: Readonly<Record<string, Mark>>;
  streams: readonly StreamMark[];
}

interface EditorState {
  name: string;
  pipeline: Pipeline | null;
  operators: ReadonlyMap<string, Operator>;
  history: past.History<PipelineDocument>;
  /** the running version while the draft differs from it, else null */
  deployed: PipelineDocument | null;
  /** the version that is shown in place of the draft, with its changes; nothing can be edited then */
  looked: LookedAt | null;
  nodes: FlowNode[];
  edges: StreamEdge[];
  selected: ReadonlySet<string>;
  selectedEdges: ReadonlySet<string>;
  mode: Mode;
  save: SaveState;
  faults: Fault[];
  /** the document to which `faults` and `schemas` belong; null before the first check */
  checked: PipelineDocument | null;
  schemas: Readonly<Record<string, StreamSchema>>;
  /** the columns of the streams of what runs, by stream; null while they are not known */
  running: Readonly<Record<string, StreamSchema>> | null;
  problemsOpen: boolean;
  /** the columns of all elements are shown in place of the elements to add */
  columnsOpen: boolean;
  /** a field to focus once the inspector shows it */
  focusPath: string | null;
  /** the fields that the user has been to: see touched.ts */
  touched: ReadonlySet<string>;
  /** the element whose name is written on its card */
  renaming: string | null;
}

const NONE: ReadonlySet<string> = new Set();

export const useEditor = create<EditorState>(() => ({
  name: "",
  pipeline: null,
  operators: new Map(),
  history: past.start(emptyDocument("new")),
  deployed: null,
  looked: null,
  nodes: [],
  edges: [],
  selected: NONE,
  selectedEdges: NONE,
  mode: "edit",
  save: { state: "saved", at: null },
  faults: [],
  checked: null,
  schemas: {},
  running: null,
  problemsOpen: false,
  columnsOpen: false,
  focusPath: null,
  touched: NONE,
  renaming: null,
}));

export const current = (): PipelineDocument => useEditor.getState().history.present;

/** What the canvas shows: the draft, a version or, in live mode, the running version. */
export const shown = ({ mode, deployed, looked, history }: EditorState): PipelineDocument =>
  looked?.document ?? (mode === "live" && deployed ? deployed : history.present);

/** Nodes and edges as the document and the mode now say. */
function drawn(state: EditorState): Partial<EditorState> {
  const document = shown(state);
  return {
    nodes: toNodes(document, state.operators, state.nodes, state.selected, state.mode === "live"),
    edges: toEdges(document, state.operators, state.selectedEdges, state.edges, state.looked?.streams),
  };
}

/** A change of the document, or of what is shown of it. */
function update(change: (state: EditorState) => Partial<EditorState>): void {
  useEditor.setState((state) => {
    const next = { ...state, ...change(state) };
    return { ...next, ...drawn(next) };
  });
}

export function open(
  pipeline: Pipeline,
  operators: Operator[],
  document: PipelineDocument = pipeline.document,
): void {
  const byType = new Map(operators.map((operator) => [operator.type, operator]));
  update(() => ({
    name: pipeline.name,
    pipeline,
    operators: byType,
    history: past.start(document),
    selected: NONE,
  }));
}

/** Whether the draft can be changed now, by this user: not while what runs, or a version, is shown. */
export const isEditable = ({ mode, looked }: EditorState): boolean =>
  mode === "edit" && !looked && mayAct("editor");

/** Take a changed document as one step of undo; steps with one `key` soon after each other join. */
export function commit(document: PipelineDocument, key: string | null = null): void {
  if (document === current() || useEditor.getState().looked) return;
  update((state) => ({ history: past.push(state.history, document, Date.now(), key) }));
}

export function undo(): void {
  if (useEditor.getState().looked) return;
  update((state) => ({ history: past.undo(state.history) }));
  keepSelection();
}

export function redo(): void {
  if (useEditor.getState().looked) return;
  update((state) => ({ history: past.redo(state.history) }));
  keepSelection();
}

/** Replace what is shown by another document, undoable like any change. */
export function adopt(document: PipelineDocument): void {
  commit(document);
  keepSelection();
}

/** Shows somebody else's document. Undo starts again: a step back would silently remove their changes. */
export function replace(document: PipelineDocument): void {
  update(() => ({ history: past.start(document) }));
  keepSelection();
}

/**
 * Takes over somebody else's change that does not touch ours. Undo continues as if it had always been
 * there.
 */
export function rewrite(change: (document: PipelineDocument) => PipelineDocument): void {
  update((state) => ({ history: past.mapped(state.history, change) }));
}

/** Deselects elements that no longer exist. */
function keepSelection(): void {
  const state = useEditor.getState();
  const ids = new Set(elementsOf(shown(state)).map((element) => element.id));
  select([...state.selected].filter((id) => ids.has(id)));
}

/** The stream that alone is selected. */
export function selectedEdge({ selected, selectedEdges, edges }: EditorState): StreamEdge | undefined {
  const [id] = selectedEdges;
  return selected.size === 0 && selectedEdges.size === 1 ? edges.find((edge) => edge.id === id) : undefined;
}

/** Touches only what is selected or was: with hundreds of elements a click would be felt otherwise. */
export function select(ids: Iterable<string>, edges: Iterable<string> = []): void {
  const selected = new Set(ids);
  const selectedEdges = new Set(edges);
  const mark = <T extends { id: string; selected?: boolean }>(
    items: T[],
    chosen: ReadonlySet<string>,
  ): T[] =>
    items.some((item) => !!item.selected !== chosen.has(item.id))
      ? items.map((item) =>
          !!item.selected === chosen.has(item.id) ? item : { ...item, selected: chosen.has(item.id) },
        )
      : items;
  useEditor.setState(({ nodes, edges: streams }) => ({
    selected,
    selectedEdges,
    nodes: mark(nodes, selected),
    edges: mark(streams, selectedEdges),
  }));
}

/** `document`: the running version while the draft differs from it, else null. */
export function showDeployed(document: PipelineDocument | null): void {
  if (useEditor.getState().deployed === document) return;
  update(() => ({ deployed: document }));
  keepSelection();
}

/** Shows another document in place of the draft, read-only; null shows the draft again. */
export function look(looked: LookedAt | null): void {
  if (useEditor.getState().looked === looked) return;
  update(() => ({ looked }));
  keepSelection();
}

export function selectAll(): void {
  select(elementsOf(shown(useEditor.getState())).map((element) => element.id));
}

/** Changes that React Flow reports: sizes and selection at once, places as a step when the drag ends. */
export function takeNodeChanges(changes: NodeChange<FlowNode>[]): void {
  const state = useEditor.getState();
  const wanted = changes.filter(
    (change) => change.type !== "remove" && !("id" in change && /^(group|note):/.test(change.id)),
  );
  if (wanted.length === 0) return;
  const measured = new Set(wanted.flatMap((change) => (change.type === "dimensions" ? [change.id] : [])));
  const cards = applyNodeChanges(wanted, state.nodes)
    .filter((node): node is CardNode => node.type === "card")
    .map((node) =>
      measured.has(node.id) && node.measured?.width && node.measured.height
        ? sized(node, { width: node.measured.width, height: node.measured.height })
        : node,
    );
  const selected = wanted.some((change) => change.type === "select")
    ? new Set(cards.filter((node) => node.selected).map((node) => node.id))
    : state.selected;
  useEditor.setState({ nodes: [...behind(shown(state), cards), ...cards], selected });
  const settled = new Set(
    wanted.flatMap((change) => (change.type === "position" && !change.dragging ? [change.id] : [])),
  );
  if (settled.size === 0) return;
  const places = Object.fromEntries(
    cards
      .filter((node) => settled.has(node.id))
      .map((node) => [node.id, { x: Math.round(node.position.x), y: Math.round(node.position.y) }]),
  );
  commit(edits.moveElements(current(), places), `move ${[...settled].join(" ")}`);
}

/** What else the same step of undo does with a new element, such as connecting it. */
export type Join = (document: PipelineDocument, id: string) => PipelineDocument;

export function addElement(type: string, at: Point, join: Join = (document) => document): string | null {
  const operator = useEditor.getState().operators.get(type);
  if (!operator) return null;
  const { document, id } = edits.addElement(current(), operator, at);
  commit(join(document, id));
  select([id]);
  openTab(PARAMETERS); // it is to be filled in
  return id;
}

/** The selected cards in a row or column, or evenly apart. */
export function arrangeSelected(how: Arrangement): void {
  const { nodes, selected } = useEditor.getState();
  const cards = nodes
    .filter((node) => selected.has(node.id))
    .map(({ id, position }) => ({ id, x: position.x, y: position.y }));
  if (cards.length < 2) return;
  const places = arranged(cards, how).map(([card, place]) => [card.id, place] as const);
  commit(edits.moveElements(current(), Object.fromEntries(places)));
}

/** Ask for the name of the one selected element, on its card. */
export function startRenaming(): void {
  const [id, ...others] = useEditor.getState().selected;
  if (id && others.length === 0) useEditor.setState({ renaming: id });
}

export function removeSelected(): void {
  const { selected, selectedEdges, edges } = useEditor.getState();
  if (selected.size === 0 && selectedEdges.size === 0) return;
  let document = current();
  for (const edge of edges.filter((each) => selectedEdges.has(each.id))) {
    document = edits.disconnect(document, { element: edge.target, port: edge.targetHandle ?? "in" });
  }
  commit(edits.removeElements(document, selected));
  select([]);
}

/** "Run as one", or separately again when one of the selected elements runs in a group. */
export function toggleGroup(): void {
  const selected = [...useEditor.getState().selected];
  const document = current();
  if (selected.some((id) => groupOf(document, id))) commit(edits.ungroup(document, selected));
  else if (selected.length > 1) commit(edits.groupElements(document, selected));
}

const CLIPBOARD = "fogline-copied";

interface Copied {
  elements: DocElement[];
  notes: DocNote[];
}

const copiedOf = (document: PipelineDocument, ids: ReadonlySet<string>): Copied => ({
  elements: edits.copyElements(document, ids),
  notes: notesAround(document, ids),
});

/** The clipboard lies in localStorage, so that it reaches other tabs and pipelines. */
export function copySelected(): number {
  const state = useEditor.getState();
  const copied = copiedOf(shown(state), state.selected);
  const count = copied.elements.length;
  if (count > 0) localStorage.setItem(CLIPBOARD, JSON.stringify(copied));
  return count;
}

export function paste(): void {
  const text = localStorage.getItem(CLIPBOARD);
  if (!text) return;
  pasted(JSON.parse(text) as Copied);
}

export function duplicateSelected(): void {
  pasted(copiedOf(current(), useEditor.getState().selected));
}

function pasted({ elements, notes }: Copied): void {
  if (elements.length === 0) return;
  const { document, ids, offset } = edits.pasteElements(current(), elements);
  commit(pasteNotes(document, notes, offset));
  select(ids);
}

export function setMode(mode: Mode): void {
  update(() => ({ mode }));
  keepSelection();
  remember({ mode: mode === "live" ? "live" : null });
}

/** Show the element of a fault, and put the cursor into its field. */
export function showFault(fault: Fault): void {
  const { element, path } = locate(current(), fault.path);
  const id = fault.element ?? element;
  if (!id) return;
  update(() => ({ mode: "edit", focusPath: path || null }));
  select([id]);
}

export interface LocatedFault extends Fault {
  /** path below the element */
  local: string;
}

const located = new WeakMap<Fault[], { document: PipelineDocument; byId: Map<string, LocatedFault[]> }>();
const NO_FAULTS: LocatedFault[] = [];

/** Sorted by element once, for each card asks. */
export function faultsOf(faults: Fault[], document: PipelineDocument, id: string): LocatedFault[] {
  let known = located.get(faults);
  if (known?.document !== document) {
    known = { document, byId: new Map() };
    for (const fault of faults) {
      const { element, path } = locate(document, fault.path);
      const owner = fault.element ?? element;
      if (owner === null) continue;
      const mine = { ...fault, local: path, message: sentence(fault.message) };
      known.byId.set(owner, [...(known.byId.get(owner) ?? []), mine]);
    }
    located.set(faults, known);
  }
  return known.byId.get(id) ?? NO_FAULTS;
}
