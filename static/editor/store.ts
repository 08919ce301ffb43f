/** What the editor shows and changes. Every change of the document goes through `commit`. */
import type { Edge, NodeChange } from "@xyflow/react";
import { applyNodeChanges } from "@xyflow/react";
import { create } from "zustand";
import { remember } from "../shared/address";
import type { DocElement, Fault, Operator, Pipeline, PipelineDocument, StreamSchema } from "../shared/types";
import * as doc from "./document";
import { boxes, toEdges, toNodes, type CardNode, type FlowNode } from "./flow";
import * as past from "./history";

type Mode = "edit" | "live";

export type SaveState =
  | { state: "saved"; at: number | null }
  | { state: "dirty" }
  | { state: "saving" }
  | { state: "failed"; why: string }
  | { state: "conflict"; theirs: PipelineDocument; revision: number };

interface EditorState {
  name: string;
  pipeline: Pipeline | null;
  operators: ReadonlyMap<string, Operator>;
  history: past.History<PipelineDocument>;
  /** what runs, while the draft differs from it; else null */
  deployed: PipelineDocument | null;
  nodes: FlowNode[];
  edges: Edge[];
  selected: ReadonlySet<string>;
  selectedEdges: ReadonlySet<string>;
  mode: Mode;
  save: SaveState;
  faults: Fault[];
  /** the document that `faults` and `schemas` speak of; null: none was checked yet */
  checked: PipelineDocument | null;
  schemas: Readonly<Record<string, StreamSchema>>;
  problemsOpen: boolean;
  /** a field to focus once the inspector shows it */
  focusPath: string | null;
}

const NONE: ReadonlySet<string> = new Set();

export const useEditor = create<EditorState>(() => ({
  name: "",
  pipeline: null,
  operators: new Map(),
  history: past.start(doc.emptyDocument("new")),
  deployed: null,
  nodes: [],
  edges: [],
  selected: NONE,
  selectedEdges: NONE,
  mode: "edit",
  save: { state: "saved", at: null },
  faults: [],
  checked: null,
  schemas: {},
  problemsOpen: false,
  focusPath: null,
}));

export const current = (): PipelineDocument => useEditor.getState().history.present;

/** What the canvas shows: the draft, or, to those who watch, what runs. */
export const shown = ({ mode, deployed, history }: EditorState): PipelineDocument =>
  mode === "live" && deployed ? deployed : history.present;

/** Nodes and edges as the document and the selection now say. */
function drawn(state: EditorState): Partial<EditorState> {
  const document = shown(state);
  return {
    nodes: toNodes(document, state.operators, state.nodes, state.selected),
    edges: toEdges(document, state.selectedEdges),
  };
}

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

/** Take a changed document as one step of undo; steps with one `key` soon after each other join. */
export function commit(document: PipelineDocument, key: string | null = null): void {
  if (document === current()) return;
  update((state) => ({ history: past.push(state.history, document, Date.now(), key) }));
}

export function undo(): void {
  update((state) => ({ history: past.undo(state.history) }));
  keepSelection();
}

export function redo(): void {
  update((state) => ({ history: past.redo(state.history) }));
  keepSelection();
}

/** Replace what is shown by another document, undoable like any change. */
export function adopt(document: PipelineDocument): void {
  commit(document);
  keepSelection();
}

/** Show somebody else's document. Undo begins anew: a step back would silently take away what they did. */
export function replace(document: PipelineDocument): void {
  update(() => ({ history: past.start(document) }));
  keepSelection();
}

/** An element that is not there any more cannot stay selected. */
function keepSelection(): void {
  const state = useEditor.getState();
  const ids = new Set(doc.elementsOf(shown(state)).map((element) => element.id));
  select([...state.selected].filter((id) => ids.has(id)));
}

export function select(ids: Iterable<string>, edges: Iterable<string> = []): void {
  update(() => ({ selected: new Set(ids), selectedEdges: new Set(edges) }));
}

/** `document`: what runs, while the draft differs from it; else null. */
export function showDeployed(document: PipelineDocument | null): void {
  if (useEditor.getState().deployed === document) return;
  update(() => ({ deployed: document }));
  keepSelection();
}

export function selectAll(): void {
  select(doc.elementsOf(shown(useEditor.getState())).map((element) => element.id));
}

/** Changes that React Flow reports: sizes and selection at once, places as a step when the drag ends. */
export function takeNodeChanges(changes: NodeChange<FlowNode>[]): void {
  const state = useEditor.getState();
  const wanted = changes.filter(
    (change) => change.type !== "remove" && !("id" in change && change.id.startsWith("group:")),
  );
  const applied = applyNodeChanges(wanted, state.nodes);
  const cards = applied.filter((node): node is CardNode => node.type === "card");
  const selected = wanted.some((change) => change.type === "select")
    ? new Set(cards.filter((node) => node.selected).map((node) => node.id))
    : state.selected;
  useEditor.setState({ nodes: [...boxes(shown(state), cards), ...cards], selected });
  const settled = wanted.flatMap((change) =>
    change.type === "position" && !change.dragging ? [change.id] : [],
  );
  if (settled.length === 0) return;
  const places = Object.fromEntries(
    cards
      .filter((node) => settled.includes(node.id))
      .map((node) => [node.id, { x: Math.round(node.position.x), y: Math.round(node.position.y) }]),
  );
  commit(doc.moveElements(current(), places), `move ${settled.join(" ")}`);
}

export function addElement(type: string, at: doc.Point): string | null {
  const operator = useEditor.getState().operators.get(type);
  if (!operator) return null;
  const { document, id } = doc.addElement(current(), operator, at);
  commit(document);
  select([id]);
  return id;
}

export function removeSelected(): void {
  const { selected, selectedEdges, edges } = useEditor.getState();
  if (selected.size === 0 && selectedEdges.size === 0) return;
  let document = current();
  for (const edge of edges.filter((each) => selectedEdges.has(each.id))) {
    document = doc.disconnect(document, { element: edge.target, port: edge.targetHandle ?? "in" });
  }
  commit(doc.removeElements(document, selected));
  select([]);
}

/** "Run as one", or apart again when one of the selected does. */
export function toggleGroup(): void {
  const selected = [...useEditor.getState().selected];
  const document = current();
  if (selected.some((id) => doc.groupOf(document, id))) commit(doc.ungroup(document, selected));
  else if (selected.length > 1) commit(doc.groupElements(document, selected));
}

const CLIPBOARD = "fogline-clipboard";

/** The clipboard lies in localStorage, so that it reaches other tabs and pipelines. */
export function copySelected(): number {
  const state = useEditor.getState();
  const copied = doc.copyElements(shown(state), state.selected);
  if (copied.length) localStorage.setItem(CLIPBOARD, JSON.stringify(copied));
  return copied.length;
}

export function paste(): void {
  const text = localStorage.getItem(CLIPBOARD);
  if (!text) return;
  pasted(JSON.parse(text) as DocElement[]);
}

export function duplicateSelected(): void {
  pasted(doc.copyElements(current(), useEditor.getState().selected));
}

function pasted(copied: DocElement[]): void {
  if (copied.length === 0) return;
  const { document, ids } = doc.pasteElements(current(), copied);
  commit(document);
  select(ids);
}

export function setMode(mode: Mode): void {
  update(() => ({ mode }));
  keepSelection();
  remember({ mode: mode === "live" ? "live" : null });
}

/** Show the element of a fault, and put the cursor into its field. */
export function showFault(fault: Fault): void {
  const { element, path } = doc.locate(current(), fault.path);
  const id = fault.element ?? element;
  if (!id) return;
  update(() => ({ mode: "edit", focusPath: path || null }));
  select([id]);
}

export interface LocatedFault extends Fault {
  /** path below the element */
  local: string;
}

export function faultsOf(faults: Fault[], document: PipelineDocument, id: string): LocatedFault[] {
  return faults.flatMap((fault) => {
    const { element, path } = doc.locate(document, fault.path);
    return (fault.element ?? element) === id
      ? [
          {
            ...fault,
            local: path,
            message:
              fault.code === "missing" && path.startsWith("params.") ? "This is required." : fault.message,
          },
        ]
      : [];
  });
}
