import { useId, useState } from "react";
import { Plus } from "lucide-react";
import { createFromTemplate } from "../shared/actions";
import { get, problemText } from "../shared/api";
import { TITLE_MAX, titleFault } from "../shared/names";
import { roleReason } from "../shared/page";
import type { Template } from "../shared/types";
import { Dialog } from "../shared/ui/dialog";
import { Text } from "../shared/ui/field";
import { useLoaded } from "../shared/ui/parts";

/** The button and its dialog: a name, and what to start from. `asked`: the dialog is open at first. */
export function NewPipeline({ asked = false }: { asked?: boolean }) {
  const locked = roleReason("editor");
  const [open, setOpen] = useState(asked && !locked);
  return (
    <>
      <button
        className="button button--primary"
        disabled={!!locked}
        title={locked ?? undefined}
        onClick={() => setOpen(true)}
      >
        <Plus aria-hidden="true" />
        New pipeline
      </button>
      {open && <Form onClose={() => setOpen(false)} />}
    </>
  );
}

function Form({ onClose }: { onClose: () => void }) {
  const [title, setTitle] = useState("");
  const [chosen, setChosen] = useState<Template | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const wrong = title === "" ? null : titleFault(title);
  const create = async () => {
    setBusy(true);
    setError("");
    try {
      const { name } = await createFromTemplate(title.trim(), chosen?.name ?? null);
      window.location.assign(`/pipelines/${encodeURIComponent(name)}`);
    } catch (problem) {
      setError(problemText(problem));
      setBusy(false);
    }
  };
  const ready = title !== "" && !wrong && !busy;
  return (
    <Dialog
      open
      onClose={onClose}
      title="New pipeline"
      footer={
        <>
          <button className="button" onClick={onClose}>
            Cancel
          </button>
          <button className="button button--primary" disabled={!ready} onClick={() => void create()}>
            Create pipeline
          </button>
        </>
      }
    >
      <div className="stack">
        <Text
          label="Name"
          placeholder="Press monitoring"
          maxLength={TITLE_MAX}
          value={title}
          fault={wrong || error}
          alert
          autoFocus
          onChange={setTitle}
          onEnter={() => ready && void create()}
        />
        <StartFrom
          chosen={chosen}
          onChoose={(template) => {
            setChosen(template);
            if (template && !title) setTitle(template.title);
          }}
        />
      </div>
    </Dialog>
  );
}

/** `chosen` null: an empty canvas. */
function StartFrom({
  chosen,
  onChoose,
}: {
  chosen: Template | null;
  onChoose: (template: Template | null) => void;
}) {
  const id = useId();
  const { data: templates = [] } = useLoaded("templates", (signal) => get<Template[]>("/templates", signal));
  return (
    <div className="field">
      <span className="field__label" id={id}>
        Start from
      </span>
      <div className="templates" role="radiogroup" aria-labelledby={id}>
        <Choice
          title="Blank"
          text="An empty canvas."
          checked={chosen === null}
          choose={() => onChoose(null)}
        />
        {templates.map((template) => (
          <Choice
            key={template.name}
            title={template.title}
            text={template.description}
            checked={chosen?.name === template.name}
            choose={() => onChoose(template)}
          />
        ))}
      </div>
    </div>
  );
}

function Choice({
  title,
  text,
  checked,
  choose,
}: {
  title: string;
  text: string;
  checked: boolean;
  choose: () => void;
}) {
  return (
    <button
      type="button"
      role="radio"
      aria-checked={checked}
      aria-description={text}
      className="template"
      onClick={choose}
    >
      <b>{title}</b>
      <span aria-hidden="true">{text}</span>
    </button>
  );
}
