/** The tab with an element's parameters, its inputs and its place. */
import { useMemo } from "react";
import type { DocElement, Operator, SchemaField } from "../../shared/types";
import { Details } from "../../shared/ui/details";
import { mendsOf } from "../columns";
import { judge } from "../connect";
import { elementsOf, formatReference, parseReference, streamName } from "../../shared/document";
import { changeElement, connect, disconnect } from "../edits";
import { SchemaForm } from "../form/form";
import { tellRefusal } from "../refusal";
import { ReplaceNote } from "../replace-note";
import { commit, current, faultsOf, useEditor, type LocatedFault } from "../store";
import { isQuiet, touch } from "../touched";
import { NodePin, LatencyTarget, Apart } from "./placement";
import { IdField } from "./id-field";

export function Parameters({
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
  const touched = useEditor((state) => state.touched);
  const mends = useMends(element, faults);
  const rest = faults.filter(({ local }) => local === "params" || !/^(params|inputs)[.[]/.test(local));
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
          element={element.id}
          root={operator.params_schema}
          value={element.params ?? {}}
          example={operator.example}
          faults={faults}
          quiet={(fault) => isQuiet(touched, element.id, fault)}
          touch={(path) => touch(element.id, path)}
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
      <Inputs element={element} operator={operator} editable={editable} faults={faults} />
      {!operator?.view && (
        <>
          <NodePin element={element} editable={editable} />
          <LatencyTarget element={element} editable={editable} />
          <Apart element={element} editable={editable} />
        </>
      )}
      <Details>
        <IdField element={element} editable={editable} />
      </Details>
    </div>
  );
}

/** Columns of the streams that an element reads; for a source, of the streams that it gives. */
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
function useMends(element: DocElement, faults: readonly LocatedFault[]) {
  const document = useEditor((state) => state.history.present);
  const operators = useEditor((state) => state.operators);
  const schemas = useEditor((state) => state.schemas);
  return useMemo(() => {
    const found = Object.entries(mendsOf(document, operators, schemas, element.id, faults));
    return Object.fromEntries(
      found.map(([path, mends]) => [
        path,
        mends.map((mend) => ({ title: mend.title, run: () => commit(mend.apply(current())) })),
      ]),
    );
  }, [document, operators, schemas, element.id, faults]);
}

/** Connections as a form: the way to connect without a pointer. */
function Inputs({
  element,
  operator,
  editable,
  faults,
}: {
  element: DocElement;
  operator: Operator | undefined;
  editable: boolean;
  faults: readonly LocatedFault[];
}) {
  const touched = useEditor((state) => state.touched);
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
    const path = `inputs.${port.name}`;
    const own = faults.filter(({ local }) => local === path || local.startsWith(`${path}.`));
    const wrong = own.some((fault) => !isQuiet(touched, element.id, fault));
    return (
      <label className="field" key={port.name} data-path={path} onBlur={() => touch(element.id, path)}>
        <span className="field__label">
          {ports.length > 1 ? `Input ${port.name}` : "Reads from"}
          {port.optional && " (optional)"}
        </span>
        <select
          className="select"
          disabled={!editable}
          aria-invalid={wrong}
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
        {own.length > 0 && (
          <span className={wrong ? "field__error" : "field__help"}>
            {own.map(({ message }) => message).join(" ")}
          </span>
        )}
        {port.description && <span className="field__help">{port.description}</span>}
      </label>
    );
  });
}
