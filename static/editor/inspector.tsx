import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { Copy, MapPin, Pin, Timer, Trash2 } from "lucide-react";
import { typeWords } from "../shared/column-types";
import { FOLLOW } from "../shared/follow";
import { millis } from "../shared/format";
import { nameFault } from "../shared/names";
import { mayAct } from "../shared/page";
import { useLive } from "../shared/live";
import type { DocElement, Operator, SchemaField, StreamSchema } from "../shared/types";
import { OperatorIcon } from "../shared/ui/icons";
import { Details } from "../shared/ui/details";
import { Markdown } from "../shared/ui/markdown";
import { Resizer } from "../shared/ui/resizer";
import { Tabs } from "../shared/ui/tabs";
import { mendsOf } from "./columns";
import { judge } from "./connect";
import {
  changeElement,
  connect,
  displayName,
  disconnect,
  elementsOf,
  findElement,
  formatReference,
  isApart,
  parseReference,
  renameElement,
  setApart,
  streamName,
} from "./document";
import { SchemaForm } from "./form/form";
import { askSites } from "./near-sources-dialog";
import { PipelinePanel, SelectionPanel } from "./pipeline-panel";
import { tellRefusal } from "./refusal";
import { ReplaceNote } from "./replace-note";
import { commit, current, duplicateSelected, faultsOf, removeSelected, select, useEditor } from "./store";

export function Inspector() {
  const selected = useEditor((state) => state.selected);
  const [first] = selected;
  const element = useEditor((state) =>
    selected.size === 1 && first ? findElement(state.history.present, first) : undefined,
  );
  return (
    <aside className="panel panel--inspector" aria-label="Inspector">
      <Resizer name="edit" label="Width of the inspector" />
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
  const columns = useColumns(element, operator);
  const mends = useMends(element);
  const rest = faults.filter(({ local }) => !local.startsWith("params") || local === "params");
  return (
    <div className="stack">
      {element.ui?.replace && <ReplaceNote element={element} editable={editable} />}
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
          mends={mends}
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
      <LatencyTarget element={element} editable={editable} />
      <Apart element={element} editable={editable} />
      <Details>
        <IdField element={element} editable={editable} />
      </Details>
    </div>
  );
}

/** Columns of the streams that an element reads; of a source, those that it gives. */
function useColumns(element: DocElement, operator: Operator | undefined): SchemaField[] {
  const schemas = useEditor((state) => state.schemas);
  return useMemo(() => {
    const read = Object.values(element.inputs ?? {}).map(parseReference);
    const own = (operator?.outputs ?? []).map((port) => ({ element: element.id, port: port.name }));
    const fields = (operator?.inputs.length === 0 ? own : read).flatMap(
      ({ element: from, port }) => schemas[`${from}.${port}`]?.fields ?? [],
    );
    return [...new Map(fields.map((field) => [field.name, field])).values()];
  }, [element.id, element.inputs, operator, schemas]);
}

/** Buttons for columns that do not fit, by the path of the parameter. */
function useMends(element: DocElement) {
  const document = useEditor((state) => state.history.present);
  const operators = useEditor((state) => state.operators);
  const schemas = useEditor((state) => state.schemas);
  return useMemo(() => {
    const found = Object.entries(mendsOf(document, operators, schemas, element.id));
    return Object.fromEntries(
      found.map(([path, mends]) => [
        path,
        mends.map((mend) => ({ title: mend.title, run: () => commit(mend.apply(current())) })),
      ]),
    );
  }, [document, operators, schemas, element.id]);
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
        <span className="field__label">
          {ports.length > 1 ? `Input ${port.name}` : "Reads from"}
          {port.optional && " (optional)"}
        </span>
        <select
          className="select"
          disabled={!editable}
          value={element.inputs?.[port.name] ?? ""}
          onChange={(event) => {
            if (!event.target.value) return commit(disconnect(current(), to));
            const from = parseReference(event.target.value);
            const verdict = judge(current(), operators, from, to, schemas);
            if (verdict.ok) commit(connect(current(), from, to));
            else tellRefusal(verdict.reason, verdict.mends);
          }}
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
                disabled={!verdict.ok && !taken && verdict.mends.length === 0}
                title={verdict.ok ? undefined : verdict.reason}
              >
                {streamName(document, operators, from)}
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
  const { node, site } = element;
  const known = (names: string[], own: string | null | undefined) =>
    [...new Set([...names, own ?? ""])].filter(Boolean).sort();
  const names = known(
    nodes.map((each) => each.name),
    node,
  );
  const sites = known(
    nodes.map((each) => each.site),
    site,
  );
  return (
    <label className="field" data-path="node site">
      <span className="field__label row">
        <Pin size={13} aria-hidden="true" /> Node
      </span>
      <select
        className="select"
        disabled={!editable}
        value={node ? `node ${node}` : site ? `site ${site}` : ""}
        onChange={({ target: { value } }) => {
          const [kind, name] = value.split(/ (.*)/s);
          const place = { node: kind === "node" ? name : null, site: kind === "site" ? name : null };
          commit(changeElement(current(), element.id, place));
        }}
      >
        <option value="">Fogline chooses</option>
        {sites.map((name) => (
          <option key={name} value={`site ${name}`}>
            Any node at {name}
          </option>
        ))}
        {names.map((name) => (
          <option key={name} value={`node ${name}`}>
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

const TARGETS_MS = [20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 60_000];

function LatencyTarget({ element, editable }: { element: DocElement; editable: boolean }) {
  const set = element.latency_ms ?? null;
  const choices = [...new Set([...TARGETS_MS, ...(set === null ? [] : [set])])].sort((a, b) => a - b);
  return (
    <label className="field" data-path="latency_ms">
      <span className="field__label row">
        <Timer size={13} aria-hidden="true" /> Latency target
      </span>
      <select
        className="select"
        disabled={!editable}
        value={set ?? ""}
        onChange={({ target: { value } }) =>
          commit(changeElement(current(), element.id, { latency_ms: value === "" ? null : Number(value) }))
        }
      >
        <option value="">As the installation has it</option>
        {choices.map((each) => (
          <option key={each} value={each}>
            {millis(each)}
          </option>
        ))}
      </select>
      <span className="field__help">
        Its results are out so soon after a row has come. A longer one takes less CPU: rows are processed
        together. Of elements that run as one, the shortest counts.
      </span>
    </label>
  );
}

/** Which elements share no node with it: said of either, it holds for both. */
function Apart({ element, editable }: { element: DocElement; editable: boolean }) {
  const document = useEditor((state) => state.history.present);
  const operators = useEditor((state) => state.operators);
  const others = elementsOf(document).filter((each) => each.id !== element.id);
  if (others.length === 0) return null;
  const chosen = others.filter((each) => isApart(element, each));
  return (
    <Details title={chosen.length ? `Apart from (${chosen.length})` : "Apart from"}>
      <fieldset className="apart stack stack--tight" data-path="apart" disabled={!editable}>
        <legend className="visually-hidden">Elements that run on another node</legend>
        {others.map((other) => (
          <label className="check" key={other.id}>
            <input
              type="checkbox"
              checked={chosen.includes(other)}
              onChange={(event) => commit(setApart(current(), element.id, other.id, event.target.checked))}
            />
            {displayName(other, operators.get(other.type))}
          </label>
        ))}
        <span className="field__help">
          Fogline never puts the two on one node by itself, so that not both fail with it.
        </span>
      </fieldset>
    </Details>
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
  const document = useEditor((state) => state.history.present);
  const operators = useEditor((state) => state.operators);
  const inputs = Object.entries(element.inputs ?? {}).map(([port, reference]) => {
    const from = parseReference(reference);
    const name = streamName(document, operators, from);
    return {
      title: operator && operator.inputs.length > 1 ? `In: ${port}, from ${name}` : `In, from ${name}`,
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
          <h3 className="section-title">{title}</h3>
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
              {typeWords(field.type)}
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
          <h3 className="section-title">Example parameters</h3>
          <pre className="code">{JSON.stringify(operator.example, null, 2)}</pre>
        </section>
      )}
    </div>
  );
}
