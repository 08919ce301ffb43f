/** The panel beside the canvas: of one element, of several, or of the pipeline. */
import { useEffect, useRef, type ReactNode } from "react";
import { Copy, MapPin, Trash2 } from "lucide-react";
import { mayAct } from "../../shared/page";
import type { DocElement, Operator } from "../../shared/types";
import { OperatorIcon } from "../../shared/ui/icons";
import { Resizer } from "../../shared/ui/resizer";
import { Tabs } from "../../shared/ui/tabs";
import { displayName, findElement } from "../../shared/document";
import { aggregateWords } from "../aggregate-words";
import { changeElement } from "../edits";
import { askSites } from "../near-sources-dialog";
import { PipelinePanel, SelectionPanel } from "../pipeline-panel";
import { PreviewTab } from "../preview/preview";
import { commit, current, duplicateSelected, removeSelected, selectedEdge, useEditor } from "../store";
import { PARAMETERS, openTab, useInspected } from "./inspected";
import { Parameters } from "./parameters";
import { Schemas } from "./schemas";
import { StreamPanel } from "./stream";
import { Docs } from "./docs";

export function Inspector() {
  const selected = useEditor((state) => state.selected);
  const [first] = selected;
  const element = useEditor((state) =>
    selected.size === 1 && first ? findElement(state.history.present, first) : undefined,
  );
  const edge = useEditor(selectedEdge);
  return (
    <aside className="panel panel--inspector" aria-label="Inspector">
      <Resizer name="edit" label="Width of the inspector" />
      {element ? (
        <ElementPanel key={element.id} element={element} />
      ) : selected.size > 1 ? (
        <SelectionPanel />
      ) : edge ? (
        <StreamPanel edge={edge} />
      ) : (
        <PipelinePanel />
      )}
    </aside>
  );
}

function ElementPanel({ element }: { element: DocElement }) {
  const operator = useEditor((state) => state.operators.get(element.type));
  const tab = useInspected((state) => state.tab);
  const focusPath = useEditor((state) => state.focusPath);
  const body = useRef<HTMLDivElement>(null);
  const editable = mayAct("editor");
  useEffect(() => {
    if (!focusPath) return;
    openTab(PARAMETERS);
    const timer = window.setTimeout(() => {
      focusField(body.current, focusPath);
      useEditor.setState({ focusPath: null });
    }, 40);
    return () => window.clearTimeout(timer);
  }, [focusPath]);
  return (
    <div className="inspector" ref={body}>
      <h2 className="visually-hidden">{displayName(element, operator)}</h2>
      <header className="inspector__head">
        <span className="op-icon" data-category={operator?.category}>
          <OperatorIcon icon={operator?.icon} category={operator?.category} />
        </span>
        <TitleField element={element} operator={operator} editable={editable} />
        {editable && (
          <>
            <HeadAction
              name="Duplicate"
              keys="Ctrl D"
              icon={<Copy aria-hidden="true" />}
              run={duplicateSelected}
            />
            <HeadAction
              name="Copy to each site"
              keys="S"
              icon={<MapPin aria-hidden="true" />}
              run={askSites}
            />
            <HeadAction
              name="Delete"
              keys="Delete; Ctrl Z brings it back"
              icon={<Trash2 aria-hidden="true" />}
              run={removeSelected}
            />
          </>
        )}
      </header>
      <Tabs
        label="Element"
        value={tab}
        onChange={openTab}
        tabs={[
          {
            id: PARAMETERS,
            title: "Parameters",
            content: <Parameters element={element} operator={operator} editable={editable} />,
          },
          ...(editable
            ? [{ id: "preview", title: "Preview", content: <PreviewTab element={element} /> }]
            : []),
          { id: "schema", title: "Schema", content: <Schemas element={element} operator={operator} /> },
          {
            id: "docs",
            title: "Docs",
            content: operator ? (
              <Docs operator={operator} />
            ) : (
              <p className="muted">There is no operator {element.type}.</p>
            ),
          },
        ]}
      />
    </div>
  );
}

function HeadAction(props: { name: string; keys: string; icon: ReactNode; run: () => void }) {
  return (
    <button
      className="button button--quiet button--icon button--small"
      aria-label={props.name}
      title={`${props.name} (${props.keys})`}
      onClick={props.run}
    >
      {props.icon}
    </button>
  );
}

function focusField(place: HTMLElement | null, path: string): void {
  const fields = [...(place?.querySelectorAll<HTMLElement>("[data-path]") ?? [])];
  // the deepest field that the path leads to or through
  const best = fields
    .filter((field) => (field.dataset.path ?? "-").split(" ").some((start) => path.startsWith(start)))
    .sort((a, b) => (b.dataset.path?.length ?? 0) - (a.dataset.path?.length ?? 0))[0];
  const fold = best?.closest("details");
  if (fold) fold.open = true;
  const control = best?.querySelector<HTMLElement>("input, select, textarea, button");
  best?.scrollIntoView({ block: "center" });
  control?.focus();
}

function TitleField({
  element,
  operator,
  editable,
}: {
  element: DocElement;
  operator: Operator | undefined;
  editable: boolean;
}) {
  return (
    <div className="inspector__names">
      <textarea
        className="inspector__title"
        aria-label="Title"
        placeholder={displayName(element, operator)}
        value={element.title ?? ""}
        rows={1}
        maxLength={120}
        readOnly={!editable}
        onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
        onChange={(event) => {
          const title = event.target.value.replace(/\s*\n\s*/g, " ");
          commit(changeElement(current(), element.id, { title }), `${element.id}.title`);
        }}
      />
      <span className="muted small ellipsis" title={operator?.summary}>
        {aggregateWords(element.type, element.params ?? {}) ?? operator?.title ?? element.type}
      </span>
    </div>
  );
}
