/** *Save as template*: a title, words, what its users set for themselves, and the picture as the gallery has it. */
import { useId, useState } from "react";
import { templatePage } from "../shared/address";
import { post } from "../shared/api";
import { displayName, elementsOf, pipelineTitle } from "../shared/document";
import { titleFault } from "../shared/names";
import { drawnOf } from "../shared/pipeline-picture";
import type { TemplatePage } from "../shared/types";
import { Text } from "../shared/ui/field";
import { createOpenState } from "../shared/ui/open-state";
import { OrderDialog } from "../shared/ui/order";
import { PipelinePicture } from "../shared/ui/pipeline-picture";
import { toast } from "../shared/ui/toast";
import { current, useEditor } from "./store";
import "./template-dialog.css";

const TITLE_MAX = 60;

const asked = createOpenState();

export const askTemplate = asked.open;

export function TemplateDialog() {
  return asked.useOpen() ? <Ask close={asked.close} /> : null;
}

function Ask({ close }: { close: () => void }) {
  const operators = useEditor((state) => state.operators);
  const [document] = useState(current);
  const [title, setTitle] = useState(pipelineTitle(document).slice(0, TITLE_MAX));
  const [description, setDescription] = useState(String(document.metadata.description ?? "").slice(0, 500));
  const [text, setText] = useState("");
  const [words, setWords] = useState<Record<string, string>>({});
  const [replace, setReplace] = useState<readonly string[]>([]);
  const elements = elementsOf(document);
  const refused =
    titleFault(title, TITLE_MAX) ??
    (description.trim() === "" ? "Describe the template in one sentence, for its card." : null) ??
    (elements.length === 0 ? "Draw an element first." : null);
  const save = async () => {
    const pipeline = document.metadata.name;
    const wanted = { pipeline, title, description, text, words, replace };
    const saved = await post<TemplatePage>("/templates", wanted);
    toast({
      tone: "done",
      title: `Saved the template ${saved.title}`,
      text: "Everybody here finds it among the templates.",
      actions: [{ title: "Open it", run: () => window.location.assign(templatePage(saved.name)) }],
    });
  };
  return (
    <OrderDialog
      title="Save as template"
      text="Everybody here can make pipelines of it. It is a copy of the draft as it is now."
      action="Save template"
      refused={refused}
      size="l"
      run={save}
      onClose={close}
    >
      <div className="template-save__picture">
        <PipelinePicture title={title} elements={drawnOf(document, operators)} />
      </div>
      <Text label="Title" value={title} maxLength={TITLE_MAX} onChange={setTitle} />
      <Area label="What it does, on its card" value={description} most={500} onChange={setDescription} />
      <Area
        label="More words, on its page"
        help="Markdown: headings, lists, *emphasis*. May stay empty."
        value={text}
        most={20000}
        onChange={setText}
      />
      <fieldset className="template-save__elements">
        <legend className="field__label">Element by element</legend>
        {elements.map((element) => {
          const operator = operators.get(element.type);
          const name = displayName(element, operator);
          return (
            <div key={element.id} className="template-save__element">
              <Text
                label={`What ${name} does`}
                value={words[element.id] ?? ""}
                placeholder={operator?.summary}
                maxLength={1000}
                onChange={(said) => setWords((now) => ({ ...now, [element.id]: said }))}
              />
              <label className="row">
                <input
                  type="checkbox"
                  checked={replace.includes(element.id)}
                  onChange={(event) =>
                    setReplace((now) =>
                      event.target.checked ? [...now, element.id] : now.filter((id) => id !== element.id),
                    )
                  }
                />
                {`Its user sets ${name} for themselves`}
              </label>
            </div>
          );
        })}
      </fieldset>
    </OrderDialog>
  );
}

function Area({
  label,
  value,
  most,
  help,
  onChange,
}: {
  label: string;
  value: string;
  most: number;
  help?: string;
  onChange: (value: string) => void;
}) {
  const id = useId();
  return (
    <div className="field">
      <label className="field__label" htmlFor={id}>
        {label}
      </label>
      <textarea
        id={id}
        className="textarea"
        maxLength={most}
        aria-describedby={help && `${id}-help`}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
      {help && (
        <p id={`${id}-help`} className="field__help">
          {help}
        </p>
      )}
    </div>
  );
}
