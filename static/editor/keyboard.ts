import { useEffect } from "react";
import type { useReactFlow } from "@xyflow/react";
import { registerCommands, type Command } from "../shared/commands";
import { mayAct } from "../shared/page";
import { toast } from "../shared/ui/toast";
import { moveElements } from "./document";
import { CARD, FIT } from "./flow";
import { layout } from "./layout";
import * as store from "./store";

type Flow = ReturnType<typeof useReactFlow>;

export function autoLayout(flow: Flow): void {
  const heights = new Map(
    store.useEditor.getState().nodes.map((node) => [node.id, node.measured?.height ?? CARD.height]),
  );
  const places = layout(store.current(), (id) => heights.get(id) ?? CARD.height);
  store.commit(moveElements(store.current(), places));
  window.setTimeout(() => void flow.fitView(FIT), 60);
}

function copy(): void {
  const copied = store.copySelected();
  if (copied) toast({ tone: "info", title: copied === 1 ? "Copied 1 element" : `Copied ${copied} elements` });
}

interface Binding {
  id: string;
  title: string;
  keys: string;
  match: (event: KeyboardEvent) => boolean;
  run: (flow: Flow) => void;
  edits: boolean;
}

const withCtrl =
  (key: string, shift = false) =>
  (event: KeyboardEvent) =>
    (event.ctrlKey || event.metaKey) && event.shiftKey === shift && event.key.toLowerCase() === key;
const plain =
  (...keys: string[]) =>
  (event: KeyboardEvent) =>
    !event.ctrlKey && !event.metaKey && !event.altKey && keys.includes(event.key);

export const BINDINGS: Binding[] = [
  { id: "undo", title: "Undo", keys: "Ctrl Z", match: withCtrl("z"), run: store.undo, edits: true },
  {
    id: "redo",
    title: "Redo",
    keys: "Ctrl Y",
    match: (event) => withCtrl("y")(event) || withCtrl("z", true)(event),
    run: store.redo,
    edits: true,
  },
  { id: "copy", title: "Copy the selection", keys: "Ctrl C", match: withCtrl("c"), run: copy, edits: false },
  {
    id: "cut",
    title: "Cut the selection",
    keys: "Ctrl X",
    match: withCtrl("x"),
    run: () => (copy(), store.removeSelected()),
    edits: true,
  },
  { id: "paste", title: "Paste", keys: "Ctrl V", match: withCtrl("v"), run: store.paste, edits: true },
  {
    id: "duplicate",
    title: "Duplicate the selection",
    keys: "Ctrl D",
    match: withCtrl("d"),
    run: store.duplicateSelected,
    edits: true,
  },
  {
    id: "all",
    title: "Select all",
    keys: "Ctrl A",
    match: withCtrl("a"),
    run: store.selectAll,
    edits: false,
  },
  {
    id: "group",
    title: "Run the selection as one, or apart again",
    keys: "Ctrl G",
    match: withCtrl("g"),
    run: store.toggleGroup,
    edits: true,
  },
  {
    id: "delete",
    title: "Delete the selection",
    keys: "Delete",
    match: plain("Delete", "Backspace"),
    run: store.removeSelected,
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
    id: "fit",
    title: "Zoom to fit",
    keys: "F",
    match: plain("f"),
    run: (flow) => void flow.fitView(FIT),
    edits: false,
  },
  {
    id: "zoom-in",
    title: "Zoom in",
    keys: "+",
    match: plain("+", "="),
    run: (flow) => void flow.zoomIn(),
    edits: false,
  },
  {
    id: "zoom-out",
    title: "Zoom out",
    keys: "-",
    match: plain("-"),
    run: (flow) => void flow.zoomOut(),
    edits: false,
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
    id: "clear",
    title: "Clear the selection",
    keys: "Esc",
    match: plain("Escape"),
    run: () => store.select([]),
    edits: false,
  },
];

const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** What is chosen, not typed: it has no undo of its own. */
const choosing = (target: EventTarget | null): boolean =>
  target instanceof HTMLSelectElement ||
  (target instanceof HTMLInputElement && /^(checkbox|radio|range|file)$/.test(target.type));

const ownsKeys = (target: EventTarget | null, binding: Binding): boolean =>
  typing(target) && !(choosing(target) && ["undo", "redo"].includes(binding.id));

/** Undo in a text field is the field's own; everywhere else, and from a dialog never, it is the editor's. */
export function useKeyboard(flow: Flow): void {
  const mode = store.useEditor((state) => state.mode);
  useEffect(() => {
    const editable = mode === "edit" && mayAct("editor");
    const press = (event: KeyboardEvent) => {
      if (event.defaultPrevented) return;
      if (document.querySelector('[role="dialog"], [role="menu"]')) return;
      const binding = BINDINGS.find((each) => each.match(event));
      if (!binding || (binding.edits && !editable) || ownsKeys(event.target, binding)) return;
      if (binding.id === "copy" && window.getSelection()?.toString()) return;
      event.preventDefault();
      binding.run(flow);
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [flow, mode]);
}

export function useEditorCommands(flow: Flow, more: Command[]): void {
  const mode = store.useEditor((state) => state.mode);
  useEffect(() => {
    const editable = mode === "edit" && mayAct("editor");
    const own = BINDINGS.filter((binding) => !binding.edits || editable).map(({ id, title, keys, run }) => ({
      id,
      title,
      keys,
      run: () => run(flow),
    }));
    return registerCommands("editor", [...more, ...own]);
  }, [flow, mode, more]);
}
