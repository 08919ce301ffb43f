import { useEffect, useId, useState } from "react";
import { Plus } from "lucide-react";
import { createFromTemplate, createPipeline } from "../shared/actions";
import { editPage } from "../shared/address";
import { get, problemText } from "../shared/api";
import { draftOf, offered, PLAYER, titleOf } from "../shared/files/pipeline";
import type { StoredFile } from "../shared/files/types";
import { useFiles } from "../shared/files/use-files";
import { rows } from "../shared/files/words";
import { ago } from "../shared/format";
import { TITLE_MAX, titleFault } from "../shared/names";
import { roleReason } from "../shared/page";
import type { Template } from "../shared/types";
import { Dialog } from "../shared/ui/dialog";
import { Text } from "../shared/ui/field";
import { useLoaded } from "../shared/ui/parts";

/** What a pipeline starts from; null: an empty canvas. */
type Start = { template: Template } | { file: StoredFile } | null;

/**
 * The button and its dialog: a name, and what to start from. `asked`: the dialog is open at first. `file`: the
 * id of the file that is chosen at first.
 */
export function NewPipeline({ asked = false, file = null }: { asked?: boolean; file?: string | null }) {
  const locked = roleReason("editor");
  const [open, setOpen] = useState(asked && !locked);
  const [first, setFirst] = useState(file);
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
      {open && (
        <Form
          file={first}
          onClose={() => {
            setOpen(false);
            setFirst(null);
          }}
        />
      )}
    </>
  );
}

/** Makes the pipeline. Returns the address of its editor. */
async function made(title: string, start: Start): Promise<string> {
  if (start && "file" in start)
    return editPage((await createPipeline(title, draftOf(start.file))).name, PLAYER);
  const { name } = await createFromTemplate(title, start?.template.name ?? null);
  return `/pipelines/${encodeURIComponent(name)}`;
}

function Form({ file, onClose }: { file: string | null; onClose: () => void }) {
  const [title, setTitle] = useState("");
  const [suggested, setSuggested] = useState("");
  // undefined: a file is asked for, and the list of files is not there yet
  const [chosen, setChosen] = useState<Start | undefined>(file === null ? null : undefined);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const wrong = title === "" ? null : titleFault(title);
  const create = async () => {
    if (chosen === undefined) return;
    setBusy(true);
    setError("");
    try {
      window.location.assign(await made(title.trim(), chosen));
    } catch (problem) {
      setError(problemText(problem));
      setBusy(false);
    }
  };
  const ready = title !== "" && !wrong && !busy && chosen !== undefined;
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
          file={file}
          onChoose={(start) => {
            setChosen(start);
            if (!start || title !== suggested) return;
            const next = "file" in start ? titleOf(start.file) : start.template.title;
            setTitle(next);
            setSuggested(next);
          }}
        />
      </div>
    </Dialog>
  );
}

/** `file`: the id of the one that is chosen as soon as the files are loaded. */
function StartFrom({
  chosen,
  file,
  onChoose,
}: {
  chosen: Start | undefined;
  file: string | null;
  onChoose: (start: Start) => void;
}) {
  const id = useId();
  const { data: templates = [] } = useLoaded("templates", (signal) => get<Template[]>("/templates", signal));
  const { data: now } = useFiles();
  // once for the dialog: a new upload would move the choices under the pointer
  const [data, setData] = useState(now);
  if (data === undefined && now !== undefined) setData(now);
  const files = offered(data ?? [], file);
  const asked = files.find((each) => each.id === file);
  const gone = file !== null && data !== undefined && !asked;
  useEffect(() => {
    if (data && chosen === undefined) onChoose(asked ? { file: asked } : null);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [data]);
  const isChosen = (name: string) =>
    !!chosen && ("file" in chosen ? chosen.file.id : chosen.template.name) === name;
  return (
    <div className="field">
      <span className="field__label" id={id}>
        Start from
      </span>
      {gone && <p className="field__error">The file is not there any more.</p>}
      <div className="templates" role="radiogroup" aria-labelledby={id}>
        <Choice
          title="Blank"
          text="An empty canvas. There you can start with a file of yours, too."
          checked={chosen === null}
          choose={() => onChoose(null)}
        />
        {files.map((each) => (
          <Choice
            key={each.id}
            title={each.name}
            text={`A file with ${rows(each.rows ?? 0)}, uploaded ${ago(each.created_at)}. The pipeline plays it.`}
            checked={isChosen(each.id)}
            choose={() => onChoose({ file: each })}
          />
        ))}
        {templates.map((template) => (
          <Choice
            key={template.name}
            title={template.title}
            text={template.description}
            checked={isChosen(template.name)}
            choose={() => onChoose({ template })}
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
