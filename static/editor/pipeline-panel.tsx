import { Copy, Layers, Trash2, Ungroup } from "lucide-react";
import { mayAct } from "../shared/page";
import { plural } from "../shared/format";
import type { PipelineDocument } from "../shared/types";
import { displayName, elementsOf, groupOf, groupsOf } from "./document";
import { BINDINGS } from "./keyboard";
import { commit, current, duplicateSelected, removeSelected, select, toggleGroup, useEditor } from "./store";

/** What the inspector shows when nothing is selected. */
export function PipelinePanel() {
  const document = useEditor((state) => state.history.present);
  const editable = mayAct("editor");
  const describe = (description: string) => {
    const { description: _, ...metadata } = current().metadata;
    commit(
      {
        ...current(),
        metadata: (description ? { ...metadata, description } : metadata) as typeof metadata & {
          name: string;
        },
      },
      "description",
    );
  };
  return (
    <div className="inspector">
      <header className="inspector__head">
        <div className="inspector__names">
          <h2 className="inspector__heading">{document.metadata.name}</h2>
          <span className="muted small">
            {plural(elementsOf(document).length, "element")}
            {groupsOf(document).length > 0 && `, ${plural(groupsOf(document).length, "group")}`}
          </span>
        </div>
      </header>
      <div className="inspector__body stack">
        <label className="field">
          <span className="field__label">Description</span>
          <textarea
            className="textarea"
            readOnly={!editable}
            maxLength={2000}
            placeholder="What this pipeline is for"
            value={String(document.metadata.description ?? "")}
            onChange={(event) => describe(event.target.value)}
          />
        </label>
        <Outline document={document} />
        <Keys />
      </div>
    </div>
  );
}

function Outline({ document }: { document: PipelineDocument }) {
  const operators = useEditor((state) => state.operators);
  return (
    <section className="stack stack--tight">
      <h3 className="section-title">Outline</h3>
      <ul className="outline">
        {elementsOf(document).map((element) => (
          <li key={element.id}>
            <button type="button" className="outline__item" onClick={() => select([element.id])}>
              <span className="ellipsis">{displayName(element, operators.get(element.type))}</span>
              <span className="muted small ellipsis">{element.type}</span>
            </button>
          </li>
        ))}
      </ul>
      {elementsOf(document).length === 0 && <p className="muted small">Nothing drawn yet.</p>}
    </section>
  );
}

function Keys() {
  return (
    <details className="keys">
      <summary>Keyboard</summary>
      <dl>
        {BINDINGS.map((binding) => (
          <div key={binding.id}>
            <dt>{binding.title}</dt>
            <dd>
              <kbd className="kbd">{binding.keys}</kbd>
            </dd>
          </div>
        ))}
        <div>
          <dt>Commands, and jumping anywhere</dt>
          <dd>
            <kbd className="kbd">Ctrl K</kbd>
          </dd>
        </div>
      </dl>
    </details>
  );
}

export function SelectionPanel() {
  const selected = useEditor((state) => state.selected);
  const grouped = useEditor((state) => [...state.selected].some((id) => groupOf(state.history.present, id)));
  const editable = mayAct("editor");
  return (
    <div className="inspector">
      <header className="inspector__head">
        <h2 className="inspector__heading">{plural(selected.size, "element")} selected</h2>
      </header>
      <div className="inspector__body stack">
        {editable && (
          <div className="stack stack--tight">
            <button className="button" onClick={toggleGroup}>
              {grouped ? <Ungroup aria-hidden="true" /> : <Layers aria-hidden="true" />}
              {grouped ? "Run apart again" : "Run as one"}
            </button>
            <button className="button" onClick={duplicateSelected}>
              <Copy aria-hidden="true" />
              Duplicate
            </button>
            <button className="button" onClick={removeSelected}>
              <Trash2 aria-hidden="true" />
              Delete
            </button>
          </div>
        )}
        <p className="field__help">
          Elements that run as one are one query on one node: no stream between them leaves it, and they move
          together.
        </p>
      </div>
    </div>
  );
}
