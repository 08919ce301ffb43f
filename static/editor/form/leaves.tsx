/** Controls for single values. */
import { createContext, useContext, useEffect, useState, type ReactNode } from "react";
import { typeWords } from "../../shared/column-types";
import type { JsonSchema, SchemaField } from "../../shared/types";
import { typedNumber, withPoint } from "../../shared/numbers";
import { optionWords } from "../../shared/words";
import { typesOf } from "../columns";
import type { LocatedFault } from "../store";
import { wantsColumn, type Field } from "./schema";

export interface FormSetting {
  /** id of the element whose parameters these are */
  element: string;
  root: JsonSchema;
  faults: readonly LocatedFault[];
  /** whether a fault only says that something is still to be filled in, where the user has not been yet */
  quiet: (fault: LocatedFault) => boolean;
  /** the user leaves the field at a path */
  touch: (path: string) => void;
  /** the columns of the streams that are read; for a source, of the streams that it gives */
  columns: readonly SchemaField[];
  /** the changes that would mend the parameter at a path */
  mends: Readonly<Record<string, { title: string; run: () => void }[]>>;
  readOnly: boolean;
}

export interface FormContext extends FormSetting {
  /** all parameters, as they are */
  values: Record<string, unknown>;
  /** what a choice needs and the chosen file does not have, with why */
  lacks: Readonly<Record<string, string>>;
  /** several changes as one step of undo; undefined takes a parameter out */
  patch: (changes: Record<string, unknown>, path: string) => void;
  /** the field of a parameter that is drawn inside another one */
  row: (name: string) => ReactNode;
}

export const Context = createContext<FormContext>({
  element: "",
  root: {},
  faults: [],
  quiet: () => false,
  touch: () => undefined,
  columns: [],
  mends: {},
  readOnly: false,
  values: {},
  lacks: {},
  patch: () => undefined,
  row: () => null,
});

export interface ControlProps {
  field: Field;
  value: unknown;
  onChange: (value: unknown, path: string) => void;
}

export interface LeafProps extends ControlProps {
  id: string;
  invalid: boolean;
  describedBy: string | undefined;
}

const asText = (value: unknown): string =>
  value == null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);

export function BooleanControl({ field, value, onChange, id, describedBy }: LeafProps) {
  const { readOnly } = useContext(Context);
  return (
    <label className="check">
      <input
        id={id}
        type="checkbox"
        checked={Boolean(value ?? field.default)}
        disabled={readOnly}
        aria-describedby={describedBy}
        onChange={(event) => onChange(event.target.checked, field.path)}
      />
      {field.title}
    </label>
  );
}

export function EnumControl({ field, value, onChange, id, invalid, describedBy }: LeafProps) {
  const { readOnly } = useContext(Context);
  const options = (field.schema.enum as unknown[] | undefined) ?? [field.schema.const];
  const shown = value ?? field.default;
  return (
    <select
      className="select"
      id={id}
      value={shown == null ? "" : String(shown)}
      disabled={readOnly || (field.schema.const !== undefined && shown === field.schema.const)}
      aria-invalid={invalid}
      aria-describedby={describedBy}
      onChange={(event) =>
        onChange(
          options.find((option) => String(option) === event.target.value) ??
            (field.nullable ? null : undefined),
          field.path,
        )
      }
    >
      {(shown == null || field.nullable) && <option value="">{field.nullable ? "None" : "Choose…"}</option>}
      {options.map((option) => (
        <option key={String(option)} value={String(option)}>
          {optionWords(option)}
        </option>
      ))}
    </select>
  );
}

export function NumberControl({ field, value, onChange, id, invalid, describedBy }: LeafProps) {
  const { readOnly } = useContext(Context);
  const [text, setText] = useState(asText(value));
  useEffect(() => {
    // an undo from outside wins over what was typed; "1." on its way to 1.5 does not
    setText((old) => (typedNumber(old) === value ? old : asText(value)));
  }, [value]);
  const take = (next: string) => {
    setText(next);
    const trimmed = next.trim();
    if (trimmed === "") onChange(field.nullable ? null : undefined, field.path);
    // text that is not a number goes to the server unchanged: the server reports the fault, and no text is
    // lost
    else onChange(Number.isNaN(typedNumber(trimmed)) ? next : typedNumber(trimmed), field.path);
  };
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum } = field.schema as Record<
    string,
    number | undefined
  >;
  const bounds = [
    minimum !== undefined
      ? `at least ${minimum}`
      : exclusiveMinimum !== undefined
        ? `more than ${exclusiveMinimum}`
        : "",
    maximum !== undefined
      ? `at most ${maximum}`
      : exclusiveMaximum !== undefined
        ? `less than ${exclusiveMaximum}`
        : "",
  ].filter(Boolean);
  return (
    <input
      className="input num"
      id={id}
      inputMode={field.kind === "integer" ? "numeric" : "decimal"}
      value={text}
      readOnly={readOnly}
      aria-invalid={invalid}
      aria-describedby={describedBy}
      title={bounds.join(", ") || undefined}
      placeholder={
        field.default != null
          ? String(field.default)
          : field.example != null
            ? `for example ${asText(field.example)}`
            : undefined
      }
      onChange={(event) => take(event.target.value)}
    />
  );
}

export function TextControl({ field, value, onChange, id, invalid, describedBy }: LeafProps) {
  const { readOnly, columns, values } = useContext(Context);
  const types = typesOf(field.schema, field.beside ?? values);
  const fitting = columns.filter((column) => !types || types.includes(column.type));
  const offered = wantsColumn(field) && fitting.length > 0;
  const long =
    field.schema.format === "expression" ||
    /expression|condition|sql|query|template/.test(field.name) ||
    ((field.schema.maxLength ?? 0) > 200 && field.schema.format !== "path");
  const shared = {
    id,
    readOnly,
    value: asText(value),
    "aria-invalid": invalid,
    "aria-describedby": describedBy,
    spellCheck: false,
    placeholder:
      field.default != null && field.default !== ""
        ? String(field.default)
        : field.example != null
          ? `for example ${asText(field.example)}`
          : undefined,
    onChange: (event: { target: { value: string } }) => {
      const text = event.target.value;
      onChange(text === "" ? (field.nullable ? null : field.required ? "" : undefined) : text, field.path);
    },
  };
  if (long) {
    return (
      <>
        <textarea className="textarea mono" rows={2} {...shared} />
        {columns.length > 0 && (
          <p className="field__help">Columns: {columns.map((column) => column.name).join(", ")}</p>
        )}
      </>
    );
  }
  return (
    <>
      <input className="input" list={offered ? `${id}-columns` : undefined} autoComplete="off" {...shared} />
      {offered && (
        <datalist id={`${id}-columns`}>
          {fitting.map((column) => (
            <option key={column.name} value={column.name} label={typeWords(column.type)} />
          ))}
        </datalist>
      )}
    </>
  );
}

export function ScalarControl({
  field,
  value,
  onChange,
  id,
  types,
}: ControlProps & { id: string; types: string[] }) {
  const { readOnly } = useContext(Context);
  const take = (typed: string): unknown => {
    if (typed === "") return field.nullable ? null : undefined;
    // where a text is allowed, "80,5" is one
    const text = types.includes("string") ? typed : withPoint(typed);
    if (
      (types.includes("number") || types.includes("integer")) &&
      text.trim() !== "" &&
      Number.isFinite(Number(text)) &&
      String(Number(text)) === text.trim()
    )
      return Number(text);
    if (types.includes("boolean") && (text === "true" || text === "false")) return text === "true";
    return text;
  };
  return (
    <input
      className="input"
      id={id}
      value={asText(value)}
      readOnly={readOnly}
      placeholder={asText(field.default ?? field.example) || undefined}
      onChange={(event) => onChange(take(event.target.value), field.path)}
    />
  );
}

export function JsonControl({ field, value, onChange, id, describedBy }: LeafProps) {
  const { readOnly } = useContext(Context);
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, null, 2));
  const [wrong, setWrong] = useState(false);
  const take = (next: string) => {
    setText(next);
    try {
      onChange(next.trim() === "" ? undefined : JSON.parse(next), field.path);
      setWrong(false);
    } catch {
      setWrong(true);
    }
  };
  return (
    <>
      <textarea
        className="textarea mono"
        id={id}
        value={text}
        readOnly={readOnly}
        aria-invalid={wrong}
        aria-describedby={describedBy}
        spellCheck={false}
        onChange={(event) => take(event.target.value)}
      />
      {wrong && <p className="field__error">This is not valid JSON yet. The last valid value is kept.</p>}
    </>
  );
}
