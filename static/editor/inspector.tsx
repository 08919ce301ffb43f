import { useEffect, useMemo, useRef, useState } from "react";
import { Copy, Pin, Trash2 } from "lucide-react";
import { FOLLOW } from "../shared/follow";
import { nameFault } from "../shared/names";
import { mayAct } from "../shared/page";
import { useLive } from "../shared/live";
import type { DocElement, Operator, StreamSchema } from "../shared/types";
import { OperatorIcon } from "../shared/ui/icons";
import { Markdown } from "../shared/ui/markdown";
import { Tabs } from "../shared/ui/tabs";
import { judge } from "./connect";
import {
  changeElement,
  connect,
  displayName,
  disconnect,
  elementsOf,
  findElement,
  formatReference,
  parseReference,
  renameElement,
} from "./document";
import { SchemaForm } from "./form/form";
import { PipelinePanel, SelectionPanel } from "./pipeline-panel";
import { commit, current, duplicateSelected, faultsOf, removeSelected, select, useEditor } from "./store";

export function Inspector() {
  const selected = useEditor((state) => state.selected);
  const [first] = selected;
  const element = useEditor((state) =>
    selected.size === 1 && first ? findElement(state.history.present, first) : undefined,
  );
  return (
    <aside className="panel panel--inspector" aria-label="Inspector">
      {element ? (
        <ElementPanel key={element.id} element={element} />
      ) : selected.size > 1 ? (
        <SelectionPanel />
      ) : (
        <PipelinePanel />
      )}
    </aside>
  );
}

function ElementPanel({ element }: { element: DocElement }) {
  const operator = useEditor((state) => state.operators.get(element.type));
  const [tab, setTab] = useState("parameters");
  const focusPath = useEditor((state) => state.focusPath);
  const body = useRef<HTMLDivElement>(null);
  const editable = mayAct("editor");
  useEffect(() => {
    if (!focusPath) return;
    setTab("parameters");
    const timer = window.setTimeout(() => {
      focusField(body.current, focusPath);
      useEditor.setState({ focusPath: null });
    }, 40);
    return () => window.clearTimeout(timer);
  }, [focusPath]);
  return (
    <div className="inspector" ref={body}>
      <header className="inspector__head">
        <span className="op-icon" data-category={operator?.category}>
          <OperatorIcon icon={operator?.icon} category={operator?.category} />
        </span>
        <TitleField element={element} operator={operator} editable={editable} />
        {editable && (
          <>
            <button
              className="button button--quiet button--icon button--small"
              aria-label="Duplicate"
              title="Duplicate (Ctrl D)"
              onClick={duplicateSelected}
            >
              <Copy aria-hidden="true" />
            </button>
            <button
              className="button button--quiet button--icon button--small"
              aria-label="Delete"
              title="Delete (Delete key); Ctrl Z brings it back"
              onClick={removeSelected}
            >
              <Trash2 aria-hidden="true" />
            </button>
          </>
        )}
      </header>
      <Tabs
        label="Element"
        value={tab}
        onChange={setTab}
        tabs={[
          {
            id: "parameters",
            title: "Parameters",
            content: <Parameters element={element} operator={operator} editable={editable} />,
          },
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

function focusField(place: HTMLElement | null, path: string): void {
  const fields = [...(place?.querySelectorAll<HTMLElement>("[data-path]") ?? [])];
  // the deepest field that the path leads to or through
  const best = fields
    .filter((field) => path.startsWith(field.dataset.path ?? "-"))
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
      <input
        className="inspector__title"
        aria-label="Title"
        placeholder={displayName(element, operator)}
        value={element.title ?? ""}
        maxLength={120}
        readOnly={!editable}
        onChange={(event) =>
          commit(changeElement(current(), element.id, { title: event.target.value }), `${element.id}.title`)
        }
      />
      <span className="muted small ellipsis" title={operator?.summary}>
        {operator?.title ?? element.type}
      </span>
    </div>
  );
}

function Parameters({
  element,
  operator,
  editable,
}: {
  element: DocElement;
  operator: Operator | undefined;
  editable: boolean;
}) {
  const allFaults = useEditor((state) => state.faults);
  const checked = useEditor((state) => state.checked ?? state.history.present);
  const faults = useMemo(() => faultsOf(allFaults, checked, element.id), [allFaults, checked, element.id]);
  const columns = useColumns(element);
  const rest = faults.filter(({ local }) => !local.startsWith("params") || local === "params");
  return (
    <div className="stack">
      {rest.length > 0 && (
        <div className="notice notice--error" role="alert">
          <ul className="plain-list">
            {rest.map((fault, index) => (
              <li key={index}>{fault.message}</li>
            ))}
          </ul>
        </div>
      )}
      {operator ? (
        <SchemaForm
          root={operator.params_schema}
          value={element.params ?? {}}
          example={operator.example}
          faults={faults}
          columns={columns}
          readOnly={!editable}
          onChange={(params, path) =>
            commit(changeElement(current(), element.id, { params }), `${element.id}.${path}`)
          }
        />
      ) : (
        <p className="muted">There is no operator {element.type} in this installation.</p>
      )}
      <hr className="line" />
      <Inputs element={element} operator={operator} editable={editable} />
      <NodePin element={element} editable={editable} />
      <IdField element={element} editable={editable} />
    </div>
  );
}

/** Columns of the streams that an element reads. */
function useColumns(element: DocElement): string[] {
  const schemas = useEditor((state) => state.schemas);
  return useMemo(() => {
    const read = Object.values(element.inputs ?? {}).map(parseReference);
    const names = read.flatMap(
      ({ element: from, port }) => schemas[`${from}.${port}`]?.fields.map((field) => field.name) ?? [],
    );
    return [...new Set(names)];
  }, [element.inputs, schemas]);
}

/** Connections as a form: the way to connect without a pointer. */
function Inputs({
  element,
  operator,
  editable,
}: {
  element: DocElement;
  operator: Operator | undefined;
  editable: boolean;
}) {
  const document = useEditor((state) => state.history.present);
  const operators = useEditor((state) => state.operators);
  const schemas = useEditor((state) => state.schemas);
  const ports = operator?.inputs ?? [];
  if (ports.length === 0) return null;
  const outputs = elementsOf(document).flatMap((each) =>
    (operators.get(each.type)?.outputs ?? []).map((port) => ({ element: each.id, port: port.name })),
  );
  return ports.map((port) => {
    const to = { element: element.id, port: port.name };
    return (
      <label className="field" key={port.name} data-path={`inputs.${port.name}`}>
        <span className="field__label">{ports.length > 1 ? `Input ${port.name}` : "Reads from"}</span>
        <select
          className="select"
          disabled={!editable}
          value={element.inputs?.[port.name] ?? ""}
          onChange={(event) =>
            commit(
              event.target.value
                ? connect(current(), parseReference(event.target.value), to)
                : disconnect(current(), to),
            )
          }
        >
          <option value="">Nothing yet</option>
          {outputs.map((from) => {
            const reference = formatReference(from);
            const verdict = judge(document, operators, from, to, schemas);
            const taken = element.inputs?.[port.name] === reference;
            return (
              <option
                key={reference}
                value={reference}
                disabled={!verdict.ok && !taken}
                title={verdict.ok ? undefined : verdict.reason}
              >
                {reference}
                {!verdict.ok && !taken ? ` (${verdict.reason})` : ""}
              </option>
            );
          })}
        </select>
        {port.description && <span className="field__help">{port.description}</span>}
      </label>
    );
  });
}

function NodePin({ element, editable }: { element: DocElement; editable: boolean }) {
  const nodes = useLive((state) => state.nodes);
  const names = [...new Set([...nodes.map((node) => node.name), ...(element.node ? [element.node] : [])])];
  return (
    <label className="field" data-path="node">
      <span className="field__label row">
        <Pin size={13} aria-hidden="true" /> Node
      </span>
      <select
        className="select"
        disabled={!editable}
        value={element.node ?? ""}
        onChange={(event) =>
          commit(changeElement(current(), element.id, { node: event.target.value || null }))
        }
      >
        <option value="">Fogline chooses</option>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <span className="field__help">
        Where it runs when the pipeline is deployed. It can be moved later while it runs.
      </span>
    </label>
  );
}

function IdField({ element, editable }: { element: DocElement; editable: boolean }) {
  const [text, setText] = useState(element.id);
  const [error, setError] = useState("");
  const take = () => {
    if (text === element.id) return setError("");
    const wrong = nameFault(text);
    if (wrong) return setError(wrong);
    if (findElement(current(), text)) return setError(`There is another element ${text}.`);
    setError("");
    commit(renameElement(current(), element.id, text));
    select([text]);
  };
  return (
    <label className="field" data-path="id">
      <span className="field__label">Id</span>
      <input
        className="input mono"
        value={text}
        readOnly={!editable}
        aria-invalid={error !== ""}
        spellCheck={false}
        onChange={(event) => setText(event.target.value)}
        onBlur={take}
        onKeyDown={(event) => event.key === "Enter" && take()}
      />
      {error ? (
        <span className="field__error">{error}</span>
      ) : (
        <span className="field__help">The name in files, topics and the REST API.</span>
      )}
    </label>
  );
}

function Schemas({ element, operator }: { element: DocElement; operator: Operator | undefined }) {
  const schemas = useEditor((state) => state.schemas);
  const inputs = Object.entries(element.inputs ?? {}).map(([port, reference]) => {
    const from = parseReference(reference);
    return {
      title:
        operator && operator.inputs.length > 1 ? `In: ${port}, from ${reference}` : `In, from ${reference}`,
      schema: schemas[`${from.element}.${from.port}`],
    };
  });
  const outputs = (operator?.outputs ?? []).map((port) => ({
    title: (operator?.outputs.length ?? 0) > 1 ? `Out: ${port.name}` : "Out",
    schema: schemas[`${element.id}.${port.name}`],
  }));
  const all = [...inputs, ...outputs];
  if (all.length === 0) return <p className="muted small">Connect the element to see what it reads.</p>;
  return (
    <div className="stack">
      {all.map(({ title, schema }) => (
        <section key={title} className="stack stack--tight">
          <h4 className="section-title">{title}</h4>
          <SchemaTable schema={schema} />
        </section>
      ))}
      <p className="field__help">Every record also has its event time, as _time.</p>
    </div>
  );
}

function SchemaTable({ schema }: { schema: StreamSchema | undefined }) {
  if (!schema) return <p className="muted small">Not known yet: something before it is missing or faulty.</p>;
  if (schema.fields.length === 0) return <p className="muted small">No columns.</p>;
  return (
    <table className="table table--tight">
      <tbody>
        {schema.fields.map((field) => (
          <tr key={field.name}>
            <td className="mono">{field.name}</td>
            <td className="muted">
              {field.type}
              {field.unit ? `, ${field.unit}` : ""}
            </td>
            <td>{schema.key === field.name && <span className="badge">key</span>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Docs({ operator }: { operator: Operator }) {
  return (
    <div className="stack">
      <Markdown text={operator.docs || operator.summary} />
      <p className="field__help">
        {operator.stateful ? "Keeps state, which moves along with it. " : "Keeps no state. "}
        <b>{FOLLOW[operator.follow].title}.</b> {FOLLOW[operator.follow].text}
        {operator.follow_depends &&
          " With some parameters it is otherwise: its state says so once it is deployed."}
      </p>
      {Object.keys(operator.example ?? {}).length > 0 && (
        <section className="stack stack--tight">
          <h4 className="section-title">Example parameters</h4>
          <pre className="code">{JSON.stringify(operator.example, null, 2)}</pre>
        </section>
      )}
    </div>
  );
}
