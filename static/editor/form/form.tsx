import { useContext, useEffect, useId, useState } from "react";
import { ArrowDown, ArrowUp, Plus, Trash2 } from "lucide-react";
import { span } from "../../shared/format";
import type { JsonSchema } from "../../shared/types";
import {
  BooleanControl,
  EnumControl,
  NumberControl,
  TextControl,
  ScalarControl,
  JsonControl,
  Context,
  type ControlProps,
  type FormSetting,
  type LeafProps,
} from "./leaves";
import { AlarmControl } from "./alarm-field";
import { ChoiceControl } from "./choices";
import { ConditionControl } from "./condition-field";
import { ConnectionControl } from "./connection-field";
import { FileField } from "./file-field";
import { Tool } from "./tool";
import {
  blank,
  drawnElsewhere,
  faultsAt,
  fieldOf,
  fieldsOf,
  folded,
  isCondition,
  resolve,
  variantOf,
  variantTitle,
  wantsColumn,
  words,
  type Field,
} from "./schema";
import { patched, tableOf } from "./table";
import { useFiles } from "../../shared/files/use-files";
import "./form.css";

interface FormProps extends FormSetting {
  value: Record<string, unknown>;
  example: Record<string, unknown>;
  onChange: (value: Record<string, unknown>, path: string) => void;
}

/** A form made from an operator's JSON Schema. `onChange` names the path that changed. */
export function SchemaForm({ value, example, onChange, ...setting }: FormProps) {
  const all = fieldsOf(setting.root, setting.root, "params", example);
  const elsewhere = drawnElsewhere(all);
  const fields = all.filter((field) => !elsewhere.has(field.name));
  // chosen once: a field must not move away while it is typed in
  const [names] = useState(() => new Set(folded(fields, value).more.map((field) => field.name)));
  const lacks = useLacks(all, value);
  const patch = (changes: Record<string, unknown>, path: string) => onChange(patched(value, changes), path);
  const row = (field: Field) => (
    <FieldRow
      key={field.name}
      field={field}
      value={value[field.name]}
      onChange={(next, path) => patch({ [field.name]: next }, path)}
    />
  );
  const more = fields.filter((field) => names.has(field.name));
  const faulty = more.some((field) => setting.faults.some(({ local }) => local.startsWith(field.path)));
  const [isOpen, setIsOpen] = useState(faulty);
  // a fault opens it, and it stays open when the fault is mended: somebody types there
  useEffect(() => {
    if (faulty) setIsOpen(true);
  }, [faulty]);
  const inside = (name: string) => all.filter((field) => field.name === name).map(row);
  if (fields.length === 0) return <p className="muted small">This element has no parameters.</p>;
  return (
    <Context.Provider value={{ ...setting, values: value, lacks, patch, row: inside }}>
      <div className="form">
        {fields.filter((field) => !names.has(field.name)).map(row)}
        {more.length > 0 && (
          <details
            className="form-more"
            open={isOpen}
            onToggle={(event) => setIsOpen(event.currentTarget.open)}
          >
            <summary>More parameters ({more.length})</summary>
            <div className="form">{more.map(row)}</div>
          </details>
        )}
      </div>
    </Context.Provider>
  );
}

/** What the table that is chosen in one of the fields does not have. */
function useLacks(fields: Field[], value: Record<string, unknown>): Readonly<Record<string, string>> {
  const table = fields.find(({ schema }) => tableOf(schema));
  const { data } = useFiles(table !== undefined);
  const file = data?.find(({ reference }) => reference === value[table?.name ?? ""]);
  return file?.has_time === false ? { time: "The rows of the file have no time." } : {};
}

/** Parts of a small object need no line of help each: it is their tooltip. */
function FieldRow({ field, value, onChange, terse }: ControlProps & { terse?: boolean }) {
  const id = useId();
  const { touch } = useContext(Context);
  const told = useTold(field);
  const nested = ["object", "list", "map", "union", "choices"].includes(field.kind);
  // choices in words and table previews explain themselves
  const described = field.kind === "choices" || tableOf(field.schema) ? "" : field.description;
  const help = [spanWords(field.name, value), described].filter(Boolean).join(" ");
  const describedBy =
    [help && `${id}-help`, told.any && `${id}-error`].filter(Boolean).join(" ") || undefined;
  const leaf = { field, value, onChange, id, invalid: told.wrong, describedBy };
  const label = (
    <>
      {field.title}
      {!field.required && field.nullable && field.kind !== "choices" && (
        <span className="muted"> (optional)</span>
      )}
    </>
  );
  return (
    <div
      className="field"
      data-path={field.path}
      title={terse ? field.description : undefined}
      role={field.kind === "choices" ? "radiogroup" : nested ? "group" : undefined}
      aria-label={nested ? field.title : undefined}
      onBlur={() => touch(field.path)}
    >
      {field.kind === "boolean" ? null : nested ? (
        <span className="field__label">{label}</span>
      ) : (
        <label className="field__label" htmlFor={id}>
          {label}
        </label>
      )}
      <Control {...leaf} />
      <ToldFaults path={field.path} told={told} id={`${id}-error`} />
      {help && (
        <p className={terse ? "visually-hidden" : "field__help"} id={`${id}-help`}>
          {help}
        </p>
      )}
    </div>
  );
}

/** A long time in the unit that people use: "28800 s are 8 hours." */
function spanWords(name: string, value: unknown): string {
  if (!name.endsWith("_s") || typeof value !== "number" || value < 120) return "";
  const words = span(value);
  return words.endsWith(" s") ? "" : `${value} s are ${words}.`;
}

interface Told {
  any: boolean;
  /** more than that it is still to be filled in */
  wrong: boolean;
  text: string;
}

function useTold(field: Field): Told {
  const { faults, quiet } = useContext(Context);
  const own = faultsAt(field.path, field.kind, faults);
  const wrong = own.some((fault) => !quiet(fault));
  return { any: own.length > 0, wrong, text: own.map(({ message }) => message).join(" ") };
}

/** What is wrong with a field, or that it still needs a value, with what would mend it. */
function ToldFaults({ path, told, id }: { path: string; told: Told; id: string }) {
  const { mends, readOnly } = useContext(Context);
  if (!told.any) return null;
  return (
    <>
      <p className={told.wrong ? "field__error" : "field__help"} id={id}>
        {told.text}
      </p>
      {!readOnly && <MendButtons mends={mends[path]} />}
    </>
  );
}

function MendButtons({ mends }: { mends: FormSetting["mends"][string] | undefined }) {
  if (!mends?.length) return null;
  return (
    <div className="mends">
      {mends.map(({ title, run }) => (
        <button key={title} type="button" className="button button--small" onClick={run}>
          {title}
        </button>
      ))}
    </div>
  );
}

function Control(props: LeafProps) {
  switch (props.field.kind) {
    case "boolean":
      return <BooleanControl {...props} />;
    case "enum":
      return <EnumControl {...props} />;
    case "integer":
    case "number":
      return <NumberControl {...props} />;
    case "choices":
      return <ChoiceControl {...props} />;
    case "file":
      return <FileField {...props} />;
    case "list":
      return <ListControl {...props} />;
    case "object":
      return <ObjectControl {...props} />;
    case "map":
      return <MapControl {...props} />;
    case "union":
      return <UnionControl {...props} />;
    case "json":
      return <JsonControl {...props} />;
    case "alarm":
      return <AlarmControl {...props} />;
    default:
      if (props.field.schema.format === "connection") return <ConnectionControl {...props} />;
      return isCondition(props.field) ? <ConditionControl {...props} /> : <TextControl {...props} />;
  }
}

function ListControl({ field, value, onChange }: LeafProps) {
  const { root, readOnly } = useContext(Context);
  const items = Array.isArray(value) ? value : [];
  const itemSchema = resolve((field.schema.items ?? {}) as JsonSchema, root);
  const examples = Array.isArray(field.example) ? (field.example as unknown[]) : [];
  const set = (next: unknown[], path = field.path) => onChange(next, path);
  const singular = itemName(field);
  const swap = (a: number, b: number) =>
    set(items.map((item, index) => (index === a ? items[b] : index === b ? items[a] : item)));
  const row = (index: number): Field => {
    const at = `[${index}]`;
    const example = examples[index] ?? examples[0];
    const inner = fieldOf(`${field.name}${at}`, `${field.path}${at}`, itemSchema, root, true, example);
    const named = { ...inner, title: `${words(singular)} ${index + 1}`, description: "", optional: false };
    return wantsColumn(field) && named.kind === "string"
      ? { ...named, schema: { ...named.schema, format: "column" } }
      : named;
  };
  return (
    <div className="form-list">
      {items.map((item, index) => (
        <ListItem
          key={index}
          field={row(index)}
          value={item}
          onChange={(next, path) =>
            set(
              items.map((each, at) => (at === index ? next : each)),
              path,
            )
          }
          onUp={index > 0 ? () => swap(index, index - 1) : null}
          onDown={index < items.length - 1 ? () => swap(index, index + 1) : null}
          onRemove={() => set(items.filter((_, at) => at !== index))}
        />
      ))}
      {!readOnly && (
        <button
          type="button"
          className="button button--small form-list__add"
          onClick={() => set([...items, blank(itemSchema, root) ?? null])}
        >
          <Plus aria-hidden="true" />
          Add {singular}
        </button>
      )}
    </div>
  );
}

/** What one entry of a list is called. */
const itemName = ({ schema, title }: Field): string =>
  typeof schema["x-item"] === "string"
    ? schema["x-item"]
    : title.toLowerCase().replace(/ies$/, "y").replace(/s$/, "");

interface ItemProps extends ControlProps {
  /** null for the first or the last item */
  onUp: (() => void) | null;
  onDown: (() => void) | null;
  onRemove: () => void;
}

function ListItem({ field, value, onChange, onUp, onDown, onRemove }: ItemProps) {
  const { readOnly } = useContext(Context);
  const composite = field.kind === "object" || field.kind === "union";
  return (
    <div className={`form-item${composite ? " form-item--card" : ""}`} role="group" aria-label={field.title}>
      <div className="form-item__body">
        {composite ? (
          <FieldRow field={field} value={value} onChange={onChange} />
        ) : (
          // an item that is emptied stays in the list
          <BareField field={field} value={value} onChange={(next, path) => onChange(next ?? "", path)} />
        )}
      </div>
      {!readOnly && (
        <span className="form-item__tools">
          {onUp && <Tool label={`Move ${field.title} up`} icon={<ArrowUp />} run={onUp} />}
          {onDown && <Tool label={`Move ${field.title} down`} icon={<ArrowDown />} run={onDown} />}
          <Tool label={`Remove ${field.title}`} icon={<Trash2 />} run={onRemove} />
        </span>
      )}
    </div>
  );
}

/** A control without a visible label, with a name for screen readers. */
function BareField({ field, value, onChange }: ControlProps) {
  const id = useId();
  const { touch } = useContext(Context);
  const told = useTold(field);
  return (
    <div className="field" data-path={field.path} onBlur={() => touch(field.path)}>
      <label className="visually-hidden" htmlFor={id}>
        {field.title}
      </label>
      <Control
        field={field}
        value={value}
        onChange={onChange}
        id={id}
        invalid={told.wrong}
        describedBy={told.any ? `${id}-error` : undefined}
      />
      <ToldFaults path={field.path} told={told} id={`${id}-error`} />
    </div>
  );
}

function ObjectControl({ field, value, onChange }: LeafProps) {
  const { root } = useContext(Context);
  const object = value && typeof value === "object" ? (value as Record<string, unknown>) : {};
  const fields = fieldsOf(field.schema, root, field.path, field.example);
  const small = fields.every((inner) => !["object", "list", "map", "union", "json"].includes(inner.kind));
  return (
    <div className={`form-object${small ? " form-object--small" : ""}`}>
      {fields.map((inner) => (
        <FieldRow
          key={inner.name}
          terse={small}
          field={{ ...inner, beside: object }}
          value={object[inner.name]}
          onChange={(next, path) => onChange(patched(object, { [inner.name]: next }), path)}
        />
      ))}
    </div>
  );
}

function MapControl({ field, value, onChange }: LeafProps) {
  const { root, readOnly, columns } = useContext(Context);
  const listId = useId();
  const given = value && typeof value === "object" ? (value as Record<string, unknown>) : {};
  const [rows, setRows] = useState<[string, unknown][]>(() => Object.entries(given));
  const text = JSON.stringify(given);
  useEffect(() => {
    // rows keep their order and half-typed names while they mean the same object
    setRows((old) =>
      JSON.stringify(Object.fromEntries(old.filter(([name]) => name))) === text
        ? old
        : Object.entries(JSON.parse(text) as object),
    );
  }, [text]);
  const itemSchema =
    typeof field.schema.additionalProperties === "object"
      ? (field.schema.additionalProperties as JsonSchema)
      : {};
  const set = (next: [string, unknown][]) => {
    setRows(next);
    onChange(Object.fromEntries(next.filter(([name]) => name)), field.path);
  };
  return (
    <div className="form-list">
      <datalist id={listId}>
        {columns.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {rows.map(([name, item], index) => (
        <div key={index} className="form-item">
          <div className="form-item__body form-pair">
            <input
              className="input"
              aria-label={`Name ${index + 1}`}
              list={listId}
              value={name}
              readOnly={readOnly}
              onChange={(event) =>
                set(rows.map((row, at) => (at === index ? [event.target.value, row[1]] : row)))
              }
            />
            <BareField
              field={{
                ...fieldOf(name, `${field.path}.${name}`, itemSchema, root, true),
                title: `Value ${index + 1}`,
              }}
              value={item}
              onChange={(next) => set(rows.map((row, at) => (at === index ? [row[0], next] : row)))}
            />
          </div>
          {!readOnly && (
            <Tool
              label={`Remove ${name || "entry"}`}
              icon={<Trash2 />}
              run={() => set(rows.filter((_, at) => at !== index))}
            />
          )}
        </div>
      ))}
      {!readOnly && (
        <button
          type="button"
          className="button button--small form-list__add"
          onClick={() => setRows([...rows, ["", blank(itemSchema, root) ?? ""]])}
        >
          <Plus aria-hidden="true" />
          Add entry
        </button>
      )}
    </div>
  );
}

function UnionControl({ field, value, onChange, id }: LeafProps) {
  const { root, readOnly } = useContext(Context);
  const variants = ((field.schema.oneOf ?? field.schema.anyOf) as JsonSchema[]).map((variant) =>
    resolve(variant, root),
  );
  // "a text or a number" needs no choice: one line takes both
  const simple = variants.every(
    (variant) =>
      ["string", "number", "integer", "boolean"].includes(variant.type as string) &&
      !variant.enum &&
      variant.const === undefined,
  );
  if (simple)
    return (
      <ScalarControl
        field={field}
        value={value}
        onChange={onChange}
        id={id}
        types={variants.map((variant) => variant.type as string)}
      />
    );
  const chosen = variantOf(value ?? field.default, variants);
  const inner = fieldOf(field.name, field.path, variants[chosen] ?? {}, root, true, field.example);
  return (
    <div className="form-object">
      <select
        className="select"
        id={id}
        aria-label={`Kind of ${field.title.toLowerCase()}`}
        value={chosen}
        disabled={readOnly}
        onChange={(event) => onChange(blank(variants[Number(event.target.value)] ?? {}, root), field.path)}
      >
        {variants.map((variant, index) => (
          <option key={index} value={index}>
            {words(variantTitle(variant, index))}
          </option>
        ))}
      </select>
      {inner.schema.const === undefined && (
        <BareField
          field={{ ...inner, title: field.title }}
          value={value ?? field.default}
          onChange={onChange}
        />
      )}
    </div>
  );
}
