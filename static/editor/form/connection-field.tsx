/** A parameter that names a connection: those of its kind are offered. What the element's connector reaches is
 * browsed. */
import { useContext, useState } from "react";
import { FolderSearch } from "lucide-react";
import { get } from "../../shared/api";
import { findElement } from "../../shared/document";
import type { ConnectionItem } from "../../shared/types";
import { useLoaded } from "../../shared/ui/parts";
import { BrowseDialog } from "../browse/dialog";
import { useEditor } from "../store";
import { Context, type LeafProps } from "./leaves";

/** The parameter of the connection that a connector reaches. */
const CONNECTION = "connection";

export function ConnectionControl({ field, value, onChange, id, invalid, describedBy }: LeafProps) {
  const { readOnly, element: elementId, columns } = useContext(Context);
  const element = useEditor((state) => findElement(state.history.present, elementId));
  const operator = useEditor((state) => element && state.operators.get(element.type));
  const [browsing, setBrowsing] = useState(false);
  const { data } = useLoaded(
    "connections",
    (signal) => get<ConnectionItem[]>("/connections", signal),
    10_000,
  );
  const kind = field.schema["x-kind"];
  const fitting = (data ?? []).filter((each) => each.kind === kind);
  const names = fitting.map(({ name }) => name);
  const made = fitting.filter(({ simulated }) => !simulated);
  const chosen = typeof value === "string" ? value : "";
  // where there is no choice, none has to be made
  const [only, ...others] = made.length > 0 ? made : fitting;
  const browsed = chosen || (only && others.length === 0 ? only.name : "");
  const shown = chosen && !names.includes(chosen) ? [chosen, ...names] : names;
  return (
    <>
      <select
        className="select"
        id={id}
        value={chosen}
        disabled={readOnly}
        aria-invalid={invalid}
        aria-describedby={describedBy}
        onChange={(event) => onChange(event.target.value || undefined, field.path)}
      >
        <option value="">{field.nullable ? "None" : "Choose…"}</option>
        {shown.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      {element && operator && operator.ticks !== "none" && field.name === CONNECTION && !readOnly && (
        <div>
          <button
            type="button"
            className="button button--small"
            aria-disabled={!browsed}
            title={
              browsed ? "Browse the system, and tick the items that you want" : "Choose a connection first"
            }
            onClick={() => browsed && setBrowsing(true)}
          >
            <FolderSearch aria-hidden="true" />
            {browsed ? `Browse ${browsed}` : "Browse"}
          </button>
        </div>
      )}
      {browsing && element && operator && (
        <BrowseDialog
          connection={browsed}
          element={element}
          operator={operator}
          columns={operator.inputs.length > 0 ? columns : []}
          onClose={() => setBrowsing(false)}
        />
      )}
      <p className="field__help">
        {data && made.length === 0 && "There is no connection of this kind yet. "}
        <a href="/connections/">Connections</a>
      </p>
    </>
  );
}
