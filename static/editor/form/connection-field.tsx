/** The parameter that names a connection: those of its kind are offered. */
import { useContext } from "react";
import { get } from "../../shared/api";
import type { ConnectionItem } from "../../shared/types";
import { useLoaded } from "../../shared/ui/parts";
import { Context, type LeafProps } from "./leaves";

export function ConnectionControl({ field, value, onChange, id, invalid, describedBy }: LeafProps) {
  const { readOnly } = useContext(Context);
  const { data } = useLoaded(
    "connections",
    (signal) => get<ConnectionItem[]>("/connections", signal),
    10_000,
  );
  const kind = field.schema["x-kind"];
  const names = (data ?? []).filter((each) => each.kind === kind).map(({ name }) => name);
  const chosen = typeof value === "string" ? value : "";
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
        <option value="">Choose…</option>
        {shown.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <p className="field__help">
        {data && names.length === 0 && "There is no connection of this kind yet. "}
        <a href="/connections/">Connections</a>
      </p>
    </>
  );
}
