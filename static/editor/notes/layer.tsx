/** Notes and frames on the canvas, below the cards. They are no nodes of React Flow: nothing connects to them. */
import { memo, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";
import { ViewportPortal, useReactFlow } from "@xyflow/react";
import { Maximize2, Move, Trash2 } from "lucide-react";
import type { DocNote } from "../../shared/types";
import { GRID, type Point } from "../places";
import { commit, current, isEditable, shown, useEditor } from "../store";
import { changeNote, COLOURS, moveNote, notesOf, removeNote, resizeNote, SIDE, TEXT_MAX } from "./notes";
import "./notes.css";

const NONE: Point = { x: 0, y: 0 };

export const Notes = memo(function Notes() {
  const notes = useEditor((state) => notesOf(shown(state)));
  const editable = useEditor(isEditable);
  if (notes.length === 0) return null;
  return (
    <ViewportPortal>
      {notes.map((note) => (
        <OneNote key={note.id} note={note} editable={editable} />
      ))}
    </ViewportPortal>
  );
});

type Hold = "move" | "resize";

/** Lets a handle be dragged, or moved by arrow keys; one drag is one step of undo. */
function useHandle(note: DocNote) {
  const flow = useReactFlow();
  const start = useRef<{ hold: Hold; at: Point } | null>(null);
  const [by, setBy] = useState<{ hold: Hold } & Point>({ hold: "move", ...NONE });
  const change = (hold: Hold, step: Point, key: string | null) => {
    const apply = hold === "move" ? moveNote : resizeNote;
    if (step.x || step.y) commit(apply(current(), note.id, step), key);
  };
  const distance = (event: PointerEvent): Point => {
    const { zoom } = flow.getViewport();
    const { x, y } = start.current!.at;
    const near = (length: number) => Math.round(length / zoom / 8) * 8;
    return { x: near(event.clientX - x), y: near(event.clientY - y) };
  };
  const handle = (hold: Hold) => ({
    onPointerDown: (event: PointerEvent<HTMLElement>) => {
      if (event.button !== 0) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      start.current = { hold, at: { x: event.clientX, y: event.clientY } };
    },
    onPointerMove: (event: PointerEvent<HTMLElement>) => {
      if (start.current) setBy({ hold, ...distance(event) });
    },
    onPointerUp: (event: PointerEvent<HTMLElement>) => {
      if (!start.current) return;
      const step = distance(event);
      start.current = null;
      setBy({ hold, ...NONE });
      change(hold, step, null);
    },
    onPointerCancel: () => {
      start.current = null;
      setBy({ hold, ...NONE });
    },
    onKeyDown: (event: KeyboardEvent<HTMLElement>) => {
      const step = ARROWS[event.key];
      if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      change(hold, step, `${hold} ${note.id}`);
    },
  });
  return { handle, by };
}

const ARROWS: Readonly<Record<string, Point>> = {
  ArrowLeft: { x: -GRID, y: 0 },
  ArrowRight: { x: GRID, y: 0 },
  ArrowUp: { x: 0, y: -GRID },
  ArrowDown: { x: 0, y: GRID },
};

function OneNote({ note, editable }: { note: DocNote; editable: boolean }) {
  const { handle, by } = useHandle(note);
  const { id, kind, text = "", colour = "grey" } = note;
  const moved = by.hold === "move" ? by : NONE;
  const grown = by.hold === "resize" ? by : NONE;
  const name = kind === "frame" ? "frame" : "note";
  const shared = {
    className: "note__text nodrag nopan nowheel",
    "aria-label": kind === "frame" ? "Title of the frame" : "Text of the note",
    placeholder: editable ? (kind === "frame" ? "Title" : "Write a note") : undefined,
    maxLength: TEXT_MAX[kind],
    readOnly: !editable,
    value: text,
    onChange: (event: { target: { value: string } }) =>
      commit(changeNote(current(), id, { text: event.target.value }), `note ${id}`),
  };
  return (
    <div
      className={`note note--${kind}`}
      data-colour={colour}
      role="group"
      aria-label={text ? `${name}: ${text.slice(0, 60)}` : `empty ${name}`}
      style={{
        transform: `translate(${note.x + moved.x}px, ${note.y + moved.y}px)`,
        width: Math.max(SIDE.least, note.width + grown.x),
        height: Math.max(SIDE.least, note.height + grown.y),
      }}
    >
      {editable && (
        <div className="note__tools nodrag nopan">
          <button
            type="button"
            className="note__tool"
            aria-label={`Move the ${name}`}
            title="Drag, or use the arrow keys"
            {...handle("move")}
          >
            <Move aria-hidden="true" />
          </button>
          <select
            className="note__colour"
            aria-label="Colour"
            value={colour}
            onChange={(event) =>
              commit(changeNote(current(), id, { colour: event.target.value as DocNote["colour"] }))
            }
          >
            {COLOURS.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
          <button
            type="button"
            className="note__tool"
            aria-label={`Remove the ${name}`}
            title="Remove; Ctrl Z brings it back"
            onClick={() => commit(removeNote(current(), id))}
          >
            <Trash2 aria-hidden="true" />
          </button>
        </div>
      )}
      {kind === "frame" ? <input {...shared} type="text" /> : <textarea {...shared} />}
      {editable && (
        <button
          type="button"
          className="note__tool note__size nodrag nopan"
          aria-label={`Size of the ${name}`}
          title="Drag, or use the arrow keys"
          {...handle("resize")}
        >
          <Maximize2 aria-hidden="true" />
        </button>
      )}
    </div>
  );
}
