/** The fields of a policy's kind. */
import { useLive } from "../shared/live";
import { KINDS, type Field, type Kind, type Typed } from "../shared/policy-rules";
import { Choice, Text } from "../shared/ui/field";

const FIELD_MAX = 60;
const PLACEHOLDERS: Partial<Record<Field["type"], string>> = { moment: "2026-11-26 02:00" };

export function PolicyFields({
  kind,
  typed,
  faults,
  onChange,
}: {
  kind: Kind;
  typed: Typed;
  faults: Typed;
  onChange: (typed: Typed) => void;
}) {
  return (
    <>
      {KINDS[kind].fields.map((field) => (
        <PolicyField
          key={field.name}
          field={field}
          typed={typed}
          fault={faults[field.name]}
          onChange={(text) => onChange({ ...typed, [field.name]: text })}
        />
      ))}
    </>
  );
}

function PolicyField({
  field,
  typed,
  fault,
  onChange,
}: {
  field: Field;
  typed: Typed;
  fault: string | undefined;
  onChange: (text: string) => void;
}) {
  const { nodes, pipelines, elements } = useLive((state) => state);
  const value = typed[field.name] ?? "";
  if (field.type === "choice")
    return <Choice label={field.label} value={value} options={field.options} onChange={onChange} />;
  const known = {
    where: () => nodes.map(({ name, site }) => (typed.of === "site" ? site || name : name)),
    pipelines: () => pipelines.map(({ name }) => name),
    elements: () => (elements[typed.pipeline ?? ""] ?? []).map(({ id }) => id),
  };
  return (
    <Text
      label={field.label}
      value={value}
      onChange={onChange}
      // Where nothing was typed yet, nothing is wrong yet.
      fault={value === "" && field.type !== "number" ? undefined : fault}
      maxLength={FIELD_MAX}
      placeholder={PLACEHOLDERS[field.type] ?? ("empty" in field ? field.empty : undefined)}
      known={field.type === "name" ? [...new Set(known[field.known]())].sort() : undefined}
      number={field.type === "number"}
    />
  );
}
