/** Notes on a chart: what happened, and when. */
import { useState } from "react";
import { Trash2 } from "lucide-react";
import { exact, instant } from "../shared/format";
import type { Annotation, ChartTile } from "../shared/types";
import { Dialog, DialogAction } from "../shared/ui/dialog";
import { Text } from "../shared/ui/field";

const TEXT_MAX = 120;
const NOTES_MAX = 50;

/** As a field for a local time has it: "2026-11-28T14:03:12". */
function localText(time: number): string {
  const date = new Date(time - new Date(time).getTimezoneOffset() * 60_000);
  return date.toISOString().slice(0, 19);
}

export function NoteDialog({
  tile,
  at,
  onChange,
  onClose,
}: {
  tile: ChartTile;
  /** ms since the epoch; null: now */
  at: number | null;
  onChange: (annotations: Annotation[]) => void;
  onClose: () => void;
}) {
  const notes = tile.annotations ?? [];
  const [text, setText] = useState("");
  const [when, setWhen] = useState(localText(at ?? Date.now()));
  const time = Date.parse(when);
  const refused = Number.isNaN(time)
    ? "Give the time at which it happened."
    : notes.length >= NOTES_MAX
      ? `A chart has at most ${NOTES_MAX} notes. Remove one first.`
      : text.trim() === ""
        ? "Write what happened."
        : null;
  const add = () => {
    if (refused) return;
    onChange([...notes, { at: new Date(time).toISOString(), text: text.trim() }]);
    onClose();
  };
  return (
    <Dialog
      open
      onClose={onClose}
      size="m"
      title="Notes"
      description="The chart shows a note at its time. Everybody who sees this wall can read it."
      footer={<DialogAction title="Add the note" refused={refused} run={add} />}
    >
      <div className="stack">
        <Text
          label="What happened"
          value={text}
          onChange={setText}
          onEnter={add}
          maxLength={TEXT_MAX}
          autoFocus
        />
        <label className="field">
          <span className="field__label">When</span>
          <input
            className="input"
            type="datetime-local"
            step={1}
            value={when}
            onChange={(event) => setWhen(event.target.value)}
          />
        </label>
        {notes.length > 0 && (
          <ul className="wall-links" aria-label="Notes of this chart">
            {[...notes]
              .sort((a, b) => (instant(b.at) ?? 0) - (instant(a.at) ?? 0))
              .map((note) => (
                <li key={`${note.at} ${note.text}`}>
                  <span className="stack stack--none">
                    <span>{note.text}</span>
                    <span className="muted small">
                      {exact(note.at)}
                      {note.by ? ` by ${note.by}` : ""}
                    </span>
                  </span>
                  <button
                    type="button"
                    className="button button--quiet button--icon button--small"
                    aria-label={`Remove the note ${note.text}`}
                    onClick={() => onChange(notes.filter((each) => each !== note))}
                  >
                    <Trash2 aria-hidden="true" />
                  </button>
                </li>
              ))}
          </ul>
        )}
      </div>
    </Dialog>
  );
}
