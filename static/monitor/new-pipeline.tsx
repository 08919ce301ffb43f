import { useId, useState } from "react";
import { Plus } from "lucide-react";
import { get, post, problemText } from "../shared/api";
import { roleReason } from "../shared/page";
import type { Template } from "../shared/types";
import { Dialog } from "../shared/ui/dialog";
import { useLoaded } from "../shared/ui/parts";

const NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

function wrongName(name: string): string {
  if (name === "" || (NAME.test(name) && name.length <= 40)) return "";
  return "Lower-case letters, digits and hyphens, at most 40; it starts and ends with a letter or digit.";
}

/** The button and its dialog: a name, and what to start from. */
export function NewPipeline() {
  const [open, setOpen] = useState(false);
  const locked = roleReason("editor");
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
  const id = useId();
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<Template | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const { data: templates = [] } = useLoaded("templates", (signal) => get<Template[]>("/templates", signal));
  const wrong = wrongName(name);
  const create = async () => {
    setBusy(true);
    setError("");
    try {
      const document = chosen
        ? { ...chosen.document, metadata: { ...chosen.document.metadata, name } }
        : { apiVersion: "fogline/v1", kind: "Pipeline", metadata: { name }, spec: { elements: [] } };
      await post("/pipelines", { name, document });
      window.location.assign(`/pipelines/${encodeURIComponent(name)}`);
    } catch (problem) {
      setError(problemText(problem));
      setBusy(false);
    }
  };
  const ready = name !== "" && wrong === "" && !busy;
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
        <div className="field">
          <label className="field__label" htmlFor={id}>
            Name
          </label>
          <input
            className="input"
            id={id}
            autoFocus
            placeholder="press-monitoring"
            value={name}
            spellCheck={false}
            aria-invalid={wrong !== "" || error !== ""}
            onChange={(event) => setName(event.target.value)}
            onKeyDown={(event) => event.key === "Enter" && ready && void create()}
          />
          {(wrong || error) && (
            <p className="field__error" role="alert">
              {wrong || error}
            </p>
          )}
        </div>
        <div className="field">
          <span className="field__label" id={`${id}-from`}>
            Start from
          </span>
          <div className="templates" role="radiogroup" aria-labelledby={`${id}-from`}>
            <Choice
              title="Blank"
              text="An empty canvas."
              checked={chosen === null}
              choose={() => setChosen(null)}
            />
            {templates.map((template) => (
              <Choice
                key={template.name}
                title={template.title}
                text={template.description}
                checked={chosen?.name === template.name}
                choose={() => {
                  setChosen(template);
                  if (!name) setName(template.name);
                }}
              />
            ))}
          </div>
        </div>
      </div>
    </Dialog>
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
      aria-label={title}
      className="template"
      onClick={choose}
    >
      <b>{title}</b>
      <span>{text}</span>
    </button>
  );
}
