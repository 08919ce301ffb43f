/** The menus of the right mouse button and of the menu key, with what the keyboard map has. */
import { useEffect, type MouseEvent as ReactMouseEvent } from "react";
import { useReactFlow } from "@xyflow/react";
import { create } from "zustand";
import { PointMenu, type MenuEntry } from "../shared/ui/menu";
import { offered } from "./keyboard";
import type { Point } from "./places";
import { isEditable, select, useEditor } from "./store";

type Kind = "card" | "stream" | "canvas";

const useMenu = create<{ open: { kind: Kind; at: Point } | null }>(() => ({ open: null }));

/** Ids of bindings, in sections. */
const SECTIONS: Record<Kind, string[][]> = {
  card: [
    ["open", "rename", "connect", "move"],
    ["copy", "cut", "duplicate", "sites", "group"],
    ["row", "column", "across", "down"],
    ["delete"],
  ],
  stream: [["delete"]],
  canvas: [
    ["search", "note", "frame", "paste", "arrange"],
    ["undo", "redo"],
    ["all", "fit", "keys"],
  ],
};
const LABELS: Record<Kind, string> = {
  card: "Actions of the selection",
  stream: "Actions of the stream",
  canvas: "Actions of the canvas",
};
/** Bindings whose title speaks of more than a menu is about. */
const TITLES: Readonly<Record<string, string>> = { "stream delete": "Delete the stream" };
/** Aligning is for several, and what is drawn is not moved from node to node. */
const FOR_SEVERAL = ["row", "column", "across", "down"];
const fits = (id: string, editable: boolean, selected: number): boolean =>
  FOR_SEVERAL.includes(id) ? selected > 1 : id !== "move" || !editable;

/** What a menu offers: sections of ids, without those that are empty. */
export function sectionsOf(kind: Kind, editable: boolean, selected: number) {
  return SECTIONS[kind]
    .map((ids) => ids.filter((id) => fits(id, editable, selected)))
    .map((ids) => offered(ids, editable, selected))
    .filter((section) => section.length > 0);
}

/** Opens the menu. What it is about becomes the selection, unless it is in the selection already. */
export function openMenu(
  event: ReactMouseEvent | MouseEvent,
  kind: Kind,
  about?: { id: string; type?: string },
): void {
  const state = useEditor.getState();
  const { selected, selectedEdges } = state;
  // a lane, a frame or a ghost is no element: the browser's own menu
  if (kind === "card" && about?.type !== "card" && about?.type !== undefined) return;
  // text that is being typed has the browser's own menu too
  if (event.target instanceof HTMLInputElement) return;
  if (sectionsOf(kind, isEditable(state), 1).length === 0) return;
  if (kind === "card" && about && !selected.has(about.id)) select([about.id]);
  if (kind === "stream" && about && !selectedEdges.has(about.id)) select([], [about.id]);
  event.preventDefault();
  useMenu.setState({ open: { kind, at: placeOf(event) } });
}

/** The menu key has no place in some browsers: then it is that of what has the focus. */
function placeOf(event: ReactMouseEvent | MouseEvent): Point {
  const { clientX, clientY, target } = event;
  if (clientX || clientY || !(target instanceof Element)) return { x: clientX, y: clientY };
  const box = target.getBoundingClientRect();
  return { x: box.left + box.width / 2, y: box.top + box.height / 2 };
}

export function ContextMenu({ editable }: { editable: boolean }) {
  const flow = useReactFlow();
  const open = useMenu((state) => state.open);
  const selected = useEditor((state) => state.selected.size);
  useEffect(() => {
    // the menu key, when nothing has the focus
    const ask = (event: MouseEvent) => event.target === document.body && openMenu(event, "canvas");
    document.addEventListener("contextmenu", ask);
    return () => document.removeEventListener("contextmenu", ask);
  }, []);
  if (!open) return null;
  const close = () => useMenu.setState({ open: null });
  const sections = sectionsOf(open.kind, editable, selected);
  const entries = sections.flatMap((section, index): MenuEntry[] => [
    ...(index > 0 ? ["line" as const] : []),
    ...section.map(({ id, title, keys, disabled, run }) => ({
      title: TITLES[`${open.kind} ${id}`] ?? title,
      keys,
      disabled,
      danger: id === "delete",
      run: () => run(flow),
    })),
  ]);
  return <PointMenu label={LABELS[open.kind]} at={open.at} entries={entries} onClose={close} />;
}
