import { useContext } from "react";
import { displayName, elementsOf, limitOf } from "../../shared/document";
import { useEditor } from "../store";
import { Context, type LeafProps } from "./leaves";

/** An alarm of the pipeline, by its title. */
export function AlarmControl({ field, value, onChange, id, invalid, describedBy }: LeafProps) {
  const { readOnly } = useContext(Context);
  const document = useEditor((state) => state.history.present);
  const operators = useEditor((state) => state.operators);
  const alarms = elementsOf(document).filter((element) => limitOf(element) !== null);
  const chosen = typeof value === "string" ? value : "";
  const gone = chosen && !alarms.some((alarm) => alarm.id === chosen);
  return (
    <select
      className="select"
      id={id}
      value={chosen}
      disabled={readOnly}
      aria-invalid={invalid}
      aria-describedby={describedBy}
      onChange={(event) => onChange(event.target.value || null, field.path)}
    >
      <option value="">None</option>
      {gone && <option value={chosen}>{chosen}, which is no alarm of this pipeline</option>}
      {alarms.map((alarm) => (
        <option key={alarm.id} value={alarm.id}>
          {displayName(alarm, operators.get(alarm.type))}, now {limitOf(alarm)?.value}
        </option>
      ))}
    </select>
  );
}
