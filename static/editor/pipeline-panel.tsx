import type { ReactNode } from "react";
import {
  AlignHorizontalDistributeCenter,
  AlignStartHorizontal,
  AlignStartVertical,
  AlignVerticalDistributeCenter,
  Columns3,
  Copy,
  Keyboard,
  Layers,
  MapPin,
  Trash2,
  Ungroup,
} from "lucide-react";
import { mayAct } from "../shared/page";
import { plural } from "../shared/format";
import type { PipelineDocument } from "../shared/types";
import { Tip } from "../shared/ui/parts";
import { displayName, elementsOf, groupOf, groupsOf, pipelineTitle } from "../shared/document";
import { showKeyboardMap } from "./keyboard";
import type { Arrangement } from "./places";
import { openColumns } from "./outline/panel";
import { askSites } from "./near-sources-dialog";
import {
  arrangeSelected,
  commit,
  current,
  duplicateSelected,
  removeSelected,
  select,
  toggleGroup,
  useEditor,
} from "./store";

/** What the inspector shows when nothing is selected. */
export function PipelinePanel() {
  const document = useEditor((state) => state.history.present);
  const editable = mayAct("editor");
  const describe = (description: string) => {
    const { description: _, ...metadata } = current().metadata;
    commit(
      {
        ...current(),
        metadata: description ? { ...metadata, description } : metadata,
      },
      "description",
    );
  };
  return (
    <div className="inspector">
      <header className="inspector__head">
        <div className="inspector__names">
          <h2 className="inspector__heading">{pipelineTitle(document)}</h2>
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
        <button type="button" className="button" onClick={openColumns}>
          <Columns3 aria-hidden="true" />
          Columns of all elements
          <kbd className="kbd">K</kbd>
        </button>
        <button type="button" className="button" onClick={showKeyboardMap}>
          <Keyboard aria-hidden="true" />
          Keyboard map
          <kbd className="kbd">?</kbd>
        </button>
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
              <span className="muted small ellipsis">
                {operators.get(element.type)?.title ?? element.type}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {elementsOf(document).length === 0 && <p className="muted small">The pipeline has no elements yet.</p>}
    </section>
  );
}

const ARRANGEMENTS: readonly [Arrangement, string, string, ReactNode][] = [
  ["row", "Align in a row", "Alt R", <AlignStartHorizontal key="row" aria-hidden="true" />],
  ["column", "Align in a column", "Alt C", <AlignStartVertical key="column" aria-hidden="true" />],
  [
    "across",
    "Distribute from left to right",
    "Alt Shift R",
    <AlignHorizontalDistributeCenter key="across" aria-hidden="true" />,
  ],
  [
    "down",
    "Distribute from top to bottom",
    "Alt Shift C",
    <AlignVerticalDistributeCenter key="down" aria-hidden="true" />,
  ],
];

function Arrange({ count }: { count: number }) {
  return (
    <div className="arrange" role="group" aria-label="Align and distribute">
      {ARRANGEMENTS.map(([how, title, keys, icon]) => {
        const few = count < 3 && (how === "across" || how === "down");
        return (
          <Tip key={how} text={few ? `${title}: select three or more elements first` : `${title} (${keys})`}>
            <button
              type="button"
              className="button button--icon"
              aria-label={title}
              aria-disabled={few}
              onClick={() => !few && arrangeSelected(how)}
            >
              {icon}
            </button>
          </Tip>
        );
      })}
    </div>
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
              {grouped ? "Run separately again" : "Run as one"}
            </button>
            <Arrange count={selected.size} />
            <button className="button" onClick={duplicateSelected}>
              <Copy aria-hidden="true" />
              Duplicate
            </button>
            <button className="button" onClick={askSites}>
              <MapPin aria-hidden="true" />
              Copy to each site
            </button>
            <button className="button" onClick={removeSelected}>
              <Trash2 aria-hidden="true" />
              Delete
            </button>
          </div>
        )}
        <p className="field__help">
          Elements that run as one are one query on one node: the streams between them stay on that node, and
          they move together.
        </p>
      </div>
    </div>
  );
}
