import { useEffect } from "react";
import { registerCommands, type Command } from "../shared/commands";
import type { Operator } from "../shared/types";
import { createOpenState } from "../shared/ui/open-state";
import { toast } from "../shared/ui/toast";
import { moveElements } from "./edits";
import { startMove } from "./lanes/keys";
import { giveUpDrag } from "./lanes/store";
import { layout } from "./layout";
import { putNote } from "./notes/adding";
import { openColumns } from "./outline/panel";
import { askSites } from "./near-sources-dialog";
import { CARD, type Arrangement } from "./places";
import { chooseForSelected } from "./quick-add";
import * as store from "./store";
import { focusCard, MOVE_MS, reveal, showAll, showReadably, ZOOM, type Flow } from "./view";

export function autoLayout(flow: Flow): void {
  const heights = new Map(
    store.useEditor.getState().nodes.map((node) => [node.id, node.measured?.height ?? CARD.height]),
  );
  const places = layout(store.current(), (id) => heights.get(id) ?? CARD.height);
  store.commit(moveElements(store.current(), places));
  window.setTimeout(() => showReadably(flow), 60);
}

function copy(): void {
  const copied = store.copySelected();
  if (copied) toast({ tone: "info", title: copied === 1 ? "Copied 1 element" : `Copied ${copied} elements` });
}

/** Brings new, selected elements into view: they may be out of sight. */
function showSelected(flow: Flow): void {
  window.setTimeout(() => reveal(flow, store.useEditor.getState().selected), 60);
}

function rename(flow: Flow): void {
  store.startRenaming();
  const { renaming } = store.useEditor.getState();
  if (renaming) reveal(flow, [renaming], ZOOM.readable);
}

/** Into the first field of the selected element's form, or to its first action. */
export function goToInspector(): void {
  // a dialog that was opened meanwhile keeps the keys
  if (document.activeElement?.closest("[role=dialog]")) return;
  const places = [
    ".panel--inspector .drawer__actions",
    ".panel--inspector [role=tabpanel]",
    ".panel--inspector",
  ];
  const controls = ":is(input, select, textarea, button):not(:disabled)";
  const found = places.map((place) => document.querySelector<HTMLElement>(`${place} ${controls}`));
  found.find((control) => control !== null)?.focus();
}

export const keyboardMap = createOpenState();
export const showKeyboardMap = keyboardMap.open;

interface Binding {
  id: string;
  title: string;
  /** none when only the command palette has the command */
  keys?: string;
  match?: (event: KeyboardEvent) => boolean;
  run: (flow: Flow) => void;
  edits: boolean;
  /** how many elements have to be selected */
  needs?: 1 | 2 | 3 | "one";
}

const withCtrl =
  (key: string, shift = false) =>
  (event: KeyboardEvent) =>
    (event.ctrlKey || event.metaKey) && event.shiftKey === shift && event.key.toLowerCase() === key;
const plain =
  (...keys: string[]) =>
  (event: KeyboardEvent) =>
    !event.ctrlKey && !event.metaKey && !event.altKey && keys.includes(event.key);
/** By the key's place: with Alt, some systems write another letter. */
const withAlt = (code: string, shift: boolean) => (event: KeyboardEvent) =>
  event.altKey && !event.ctrlKey && !event.metaKey && event.shiftKey === shift && event.code === code;

const arrange = (how: Arrangement) => () => store.arrangeSelected(how);

const EDITING: Binding[] = [
  { id: "undo", title: "Undo", keys: "Ctrl Z", match: withCtrl("z"), run: store.undo, edits: true },
  {
    id: "redo",
    title: "Redo",
    keys: "Ctrl Y",
    match: (event) => withCtrl("y")(event) || withCtrl("z", true)(event),
    run: store.redo,
    edits: true,
  },
  {
    id: "search",
    title: "Search the elements to add",
    keys: "/",
    match: plain("/"),
    run: () => document.getElementById("palette-search")?.focus(),
    edits: true,
  },
  {
    id: "connect",
    title: "Connect the element",
    keys: "C",
    match: plain("c"),
    run: chooseForSelected,
    edits: true,
    needs: "one",
  },
  {
    id: "rename",
    title: "Rename the element",
    keys: "F2",
    match: plain("F2"),
    run: rename,
    edits: true,
    needs: "one",
  },
  {
    id: "open",
    title: "Go to the element's parameters, or its actions",
    keys: "Enter",
    match: plain("Enter"),
    // React Flow selects the card by the same key; the inspector shows it a moment later
    run: () => window.setTimeout(goToInspector, 40),
    edits: false,
    needs: "one",
  },
  {
    id: "copy",
    title: "Copy the selection",
    keys: "Ctrl C",
    match: withCtrl("c"),
    run: copy,
    edits: false,
    needs: 1,
  },
  {
    id: "cut",
    title: "Cut the selection",
    keys: "Ctrl X",
    match: withCtrl("x"),
    run: () => (copy(), store.removeSelected()),
    edits: true,
    needs: 1,
  },
  {
    id: "paste",
    title: "Paste",
    keys: "Ctrl V",
    match: withCtrl("v"),
    run: (flow) => (store.paste(), showSelected(flow)),
    edits: true,
  },
  {
    id: "duplicate",
    title: "Duplicate the selection",
    keys: "Ctrl D",
    match: withCtrl("d"),
    run: (flow) => (store.duplicateSelected(), showSelected(flow)),
    edits: true,
    needs: 1,
  },
  {
    id: "sites",
    title: "Copy the selection to each site",
    keys: "S",
    match: plain("s"),
    run: askSites,
    edits: true,
    needs: 1,
  },
  {
    id: "group",
    title: "Run the selection as one, or separately again",
    keys: "Ctrl G",
    match: withCtrl("g"),
    run: store.toggleGroup,
    edits: true,
    needs: 1,
  },
  {
    id: "delete",
    title: "Delete the selection",
    keys: "Delete",
    match: plain("Delete", "Backspace"),
    run: store.removeSelected,
    edits: true,
  },
];

const PLACING: Binding[] = [
  {
    id: "note",
    title: "Add a note",
    keys: "N",
    match: plain("n"),
    run: (flow) => putNote("note", flow),
    edits: true,
  },
  {
    id: "frame",
    title: "Add a frame",
    keys: "Shift N",
    match: plain("N"),
    run: (flow) => putNote("frame", flow),
    edits: true,
  },
  {
    id: "arrange",
    title: "Arrange the elements",
    keys: "L",
    match: plain("l"),
    run: autoLayout,
    edits: true,
  },
  {
    id: "row",
    title: "Align in a row",
    keys: "Alt R",
    match: withAlt("KeyR", false),
    run: arrange("row"),
    edits: true,
    needs: 2,
  },
  {
    id: "column",
    title: "Align in a column",
    keys: "Alt C",
    match: withAlt("KeyC", false),
    run: arrange("column"),
    edits: true,
    needs: 2,
  },
  {
    id: "across",
    title: "Distribute from left to right",
    keys: "Alt Shift R",
    match: withAlt("KeyR", true),
    run: arrange("across"),
    edits: true,
    needs: 3,
  },
  {
    id: "down",
    title: "Distribute from top to bottom",
    keys: "Alt Shift C",
    match: withAlt("KeyC", true),
    run: arrange("down"),
    edits: true,
    needs: 3,
  },
];

const RUNNING: Binding[] = [
  {
    id: "move",
    title: "Take the selection to another lane while it runs",
    keys: "M",
    match: plain("m"),
    run: startMove,
    edits: false,
    needs: 1,
  },
];

const LOOKING: Binding[] = [
  {
    id: "all",
    title: "Select all",
    keys: "Ctrl A",
    match: withCtrl("a"),
    run: store.selectAll,
    edits: false,
  },
  {
    id: "clear",
    title: "Give up a drag in lanes, or clear the selection; in a form: back to the card",
    keys: "Esc",
    match: plain("Escape"),
    run: () => {
      if (!giveUpDrag()) store.select([]);
    },
    edits: false,
  },
  {
    id: "columns",
    title: "Show the columns of all elements",
    keys: "K",
    match: plain("k"),
    run: openColumns,
    edits: false,
  },
  { id: "fit", title: "Zoom to fit", keys: "F", match: plain("f"), run: showAll, edits: false },
  {
    id: "zoom-in",
    title: "Zoom in",
    keys: "+",
    match: plain("+", "="),
    run: (flow) => void flow.zoomIn({ duration: MOVE_MS }),
    edits: false,
  },
  {
    id: "zoom-out",
    title: "Zoom out",
    keys: "-",
    match: plain("-"),
    run: (flow) => void flow.zoomOut({ duration: MOVE_MS }),
    edits: false,
  },
  {
    id: "keys",
    title: "Show the keyboard map",
    keys: "?",
    match: plain("?"),
    run: showKeyboardMap,
    edits: false,
  },
];

const BINDINGS = [...EDITING, ...PLACING, ...RUNNING, ...LOOKING];

/** By heading, for the keyboard map. */
export const KEYBOARD: readonly [string, readonly Binding[]][] = [
  ["Draw", EDITING],
  ["Place", PLACING],
  ["Move", RUNNING],
  ["Look", LOOKING],
];

const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** Controls in which one chooses instead of typing: they have no undo of their own. */
const choosing = (target: EventTarget | null): boolean =>
  target instanceof HTMLSelectElement ||
  (target instanceof HTMLInputElement && /^(checkbox|radio|range|file)$/.test(target.type));

/** Elsewhere Enter belongs to the focused button, link or stream. */
const onCanvas = (target: EventTarget | null): boolean =>
  target === document.body ||
  (target instanceof HTMLElement && target.matches(".react-flow__node, .react-flow__pane"));

function ownsKeys(target: EventTarget | null, binding: Binding): boolean {
  if (binding.id === "open") return !onCanvas(target);
  if (!typing(target) || binding.id === "rename") return false;
  return !(choosing(target) && ["undo", "redo"].includes(binding.id));
}

/** From a form, Escape leads back to its card, or at least to the keys of the canvas. */
function leavePanel(event: KeyboardEvent): boolean {
  const { target } = event;
  if (event.key !== "Escape" || !(target instanceof HTMLElement) || !target.closest(".panel")) return false;
  const [id] = store.useEditor.getState().selected;
  if (id) focusCard(id);
  else target.blur();
  return true;
}

/** Undo in a text field is the field's own; everywhere else, and from a dialog never, it is the editor's. */
export function useKeyboard(flow: Flow): void {
  const editable = store.useEditor(store.isEditable);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented) return;
      if (document.querySelector('[role="dialog"], [role="menu"]')) return;
      if (leavePanel(event)) return;
      const binding = BINDINGS.find((each) => each.match?.(event));
      if (!binding || (binding.edits && !editable) || ownsKeys(event.target, binding)) return;
      if (binding.id === "copy" && window.getSelection()?.toString()) return;
      event.preventDefault();
      binding.run(flow);
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [flow, editable]);
}

/** Why a command is not possible with so many selected. */
function refusal(needs: Binding["needs"], selected: number): string | null {
  if (needs === "one") return selected === 1 ? null : "Select one element first.";
  if (!needs || selected >= needs) return null;
  return ["Select an element first.", "Select two elements first.", "Select three elements first."][
    needs - 1
  ]!;
}

/** What a menu offers: the bindings with these ids that can be used in this mode, in this order. */
export function offered(ids: readonly string[], editable: boolean, selected: number): Offered[] {
  return ids.flatMap((id) => {
    const binding = BINDINGS.find((each) => each.id === id);
    if (!binding || (binding.edits && !editable)) return [];
    return [{ ...binding, disabled: refusal(binding.needs, selected) }];
  });
}

type Offered = Binding & {
  /** why not now */
  disabled: string | null;
};

/** One for each element that can be added, by what it does. */
function addCommands(operators: Iterable<Operator>, add: (type: string) => void): Command[] {
  return [...operators].map(({ type, title, summary }) => ({
    id: `add-${type}`,
    title: `Add ${title}`,
    keywords: [summary],
    run: () => add(type),
  }));
}

export function useEditorCommands(flow: Flow, more: Command[], add: (type: string) => void): void {
  const editable = store.useEditor(store.isEditable);
  const operators = store.useEditor((state) => state.operators);
  const selected = store.useEditor((state) => state.selected.size);
  useEffect(() => {
    const own = BINDINGS.filter((binding) => !binding.edits || editable).map(
      ({ id, title, keys, run, needs }): Command => ({
        id,
        title,
        keys,
        disabled: refusal(needs, selected),
        run: () => run(flow),
      }),
    );
    const adding = editable ? addCommands(operators.values(), add) : [];
    return registerCommands("editor", [...more, ...own, ...adding]);
  }, [flow, editable, more, selected, operators, add]);
}
