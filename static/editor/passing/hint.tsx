/** The columns that pass at the port or in the stream to which the pointer or the focus is. */
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { useStore } from "@xyflow/react";
import { CircleAlert } from "lucide-react";
import { useShallow } from "zustand/react/shallow";
import { findElement, nameOfId, portName } from "../../shared/document";
import { capitalised, plural } from "../../shared/format";
import { portsOf } from "../flow";
import { SchemaTable } from "../inspector/schemas";
import { useEditor } from "../store";
import { checkedOf, hasColumns } from "./checked";
import { passing, type Place } from "./passing";
import "./passing.css";

const SHOWN_AFTER_MS = 350;
/** So long the pointer may be on its way from the port to the hint. */
const HIDDEN_AFTER_MS = 200;
const COLUMNS_MAX = 10;
const GAP_PX = 12;
/** In *Live* a stream's figures stand below it. */
const GAP_TO_FIGURES_PX = 44;

interface Pointed {
  place: Place;
  /** the stream, if it is one */
  from: string | null;
  /** on the screen */
  x: number;
  y: number;
}

export function PassingHint() {
  const root = useStore((state) => state.domNode);
  const known = useEditor(hasColumns);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  useEffect(() => {
    if (!root || !known) return;
    const stop = follow(root, setPointed);
    return () => {
      stop();
      setPointed(null);
    };
  }, [root, known]);
  return pointed && createPortal(<Hint {...pointed} />, document.body);
}

/** Tells which port or stream is pointed at, and null when none is any more. Returns how to stop. */
function follow(root: HTMLElement, tell: (pointed: Pointed | null) => void): () => void {
  let timer = 0;
  let held: Element | null = null;
  const hide = () => {
    window.clearTimeout(timer);
    held = null;
    tell(null);
  };
  const show = (target: Element, at: { x: number; y: number } | null) => {
    const place = placeOf(target);
    held = target;
    if (place) tell({ ...place, ...(at ?? besideOf(target)) });
  };
  const over = (event: PointerEvent) => {
    const target = event.target as Element;
    if (event.pointerType !== "mouse" || event.buttons > 0) return;
    const found = target.closest(".passing") ? held : target.closest(".port, .react-flow__edge");
    if (found && found === held) return window.clearTimeout(timer);
    window.clearTimeout(timer);
    if (found && root.contains(found)) {
      const at = found.matches(".port") ? null : { x: event.clientX, y: event.clientY };
      timer = window.setTimeout(() => show(found, at), SHOWN_AFTER_MS);
    } else if (held && !held.matches(":focus-visible")) {
      timer = window.setTimeout(hide, HIDDEN_AFTER_MS);
    }
  };
  const focus = (event: FocusEvent) => {
    const target = event.target as Element;
    if (!target.matches(".port, .react-flow__edge") || !target.matches(":focus-visible")) return hide();
    window.clearTimeout(timer);
    show(target, null);
  };
  const escape = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !held) return;
    // Escape would also give up the selection, and with it the port that has the focus
    if (held.matches(":focus-visible")) event.stopPropagation();
    hide();
  };
  document.addEventListener("pointerover", over);
  document.addEventListener("pointerdown", hide, true);
  document.addEventListener("wheel", hide, { capture: true, passive: true });
  document.addEventListener("keydown", escape, true);
  root.addEventListener("focusin", focus);
  root.addEventListener("focusout", hide);
  return () => {
    window.clearTimeout(timer);
    document.removeEventListener("pointerover", over);
    document.removeEventListener("pointerdown", hide, true);
    document.removeEventListener("wheel", hide, true);
    document.removeEventListener("keydown", escape, true);
    root.removeEventListener("focusin", focus);
    root.removeEventListener("focusout", hide);
  };
}

/** Which port or stream an element of the page draws. */
function placeOf(target: Element): Pick<Pointed, "place" | "from"> | null {
  if (target instanceof HTMLElement && target.matches(".port")) {
    const { nodeid, handleid } = target.dataset;
    const side = target.classList.contains("target") ? "in" : "out";
    return nodeid && handleid ? { place: { side, element: nodeid, port: handleid }, from: null } : null;
  }
  const id = target.getAttribute("data-id");
  const edge = useEditor.getState().edges.find((each) => each.id === id);
  if (!edge) return null;
  return {
    place: { side: "in", element: edge.target, port: edge.targetHandle ?? "in" },
    from: edge.source,
  };
}

function besideOf(target: Element): { x: number; y: number } {
  const box = (target.querySelector(".react-flow__edge-path") ?? target).getBoundingClientRect();
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}

/** Below the place, or above it where there is no room. */
function useRoom({ x, y, from }: Pointed) {
  const figures = useEditor(({ mode }) => mode === "live" && from !== null);
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const hint = box.current;
    if (!hint) return;
    const { width, height } = hint.getBoundingClientRect();
    const left = Math.max(8, Math.min(x + GAP_PX, window.innerWidth - width - 8));
    const below = y + (figures ? GAP_TO_FIGURES_PX : GAP_PX);
    const top = below + height > window.innerHeight - 8 ? Math.max(8, y - GAP_PX - height) : below;
    hint.style.translate = `${left}px ${top}px`;
  });
  return box;
}

function Hint(pointed: Pointed) {
  const { place, from } = pointed;
  const box = useRoom(pointed);
  const checked = useEditor(useShallow(checkedOf));
  const { schema, wrong, why } = passing(checked, place);
  const name = nameOfId(checked.document, checked.operators, place.element);
  const element = findElement(checked.document, place.element);
  if (!element) return null;
  const ports = portsOf(checked.operators.get(element.type));
  const among = place.side === "in" ? ports.inputs : ports.outputs;
  const port = among.find((each) => each.name === place.port);
  const title = from
    ? `${nameOfId(checked.document, checked.operators, from)} → ${name}`
    : capitalised(portName(name, place.side, place.port, among.length));
  return (
    // a screen reader has the same as the description of the port or the stream
    <div ref={box} className="passing" aria-hidden="true">
      <b className="passing__title">{title}</b>
      {!from && port?.description && <span className="muted">{port.description}</span>}
      {wrong.map((text) => (
        <span key={text} className="passing__wrong">
          <CircleAlert aria-hidden="true" />
          {text}
        </span>
      ))}
      {schema ? (
        <SchemaTable schema={schema} most={COLUMNS_MAX} />
      ) : (
        why.map((text) => (
          <span key={text} className="muted">
            {text}
          </span>
        ))
      )}
      {schema && schema.fields.length > COLUMNS_MAX && (
        <span className="muted">
          {plural(schema.fields.length - COLUMNS_MAX, "more column")}: select the{" "}
          {from ? "stream" : "element"} to see all
        </span>
      )}
    </div>
  );
}
