/** The form of a connection, made from the JSON Schema of its kind. */
import { useId, useState } from "react";
import { post, problemText, put } from "../shared/api";
import type { ConnectionItem, ConnectionKind, ConnectionTested } from "../shared/types";
import { Dialog } from "../shared/ui/dialog";
import { Choice, Text } from "../shared/ui/field";
import { TestPart } from "./connection-test";

interface Property {
  type?: string;
  title?: string;
  description?: string;
  default?: unknown;
  enum?: string[];
  anyOf?: Property[];
  "x-secret"?: boolean;
  maxLength?: number;
}
type Typed = Record<string, unknown>;

const LONG = 1000;

/** A property without "or null". */
const plain = (property: Property): Property => {
  const inner = property.anyOf?.find(({ type }) => type !== "null");
  return inner ? { ...inner, ...property } : property;
};

export function ConnectionForm({
  connection,
  kinds,
  onClose,
  onSaved,
}: {
  connection: ConnectionItem | null;
  kinds: ConnectionKind[];
  onClose: () => void;
  onSaved: () => void;
}) {
  const [name, setName] = useState(connection?.name ?? "");
  const [kind, setKind] = useState(connection?.kind ?? kinds[0]?.kind ?? "");
  const [typed, setTyped] = useState<Typed>(connection?.fields ?? {});
  const [refused, setRefused] = useState("");
  const [saving, setSaving] = useState(false);
  const form = (kinds.find((each) => each.kind === kind)?.form ?? {}) as {
    properties?: Record<string, Property>;
    required?: string[];
  };
  const required = form.required ?? [];
  const ready = name.trim() !== "" && required.every((each) => typed[each] != null && typed[each] !== "");
  const secrets = Object.entries(form.properties ?? {}).filter(([, each]) => plain(each)["x-secret"]);
  // Secrets that cannot be opened do not stay: each is entered again, or is gone.
  const fields = connection?.secrets_lost
    ? { ...typed, ...Object.fromEntries(secrets.map(([field]) => [field, typed[field] ?? null])) }
    : typed;
  const save = () => {
    setSaving(true);
    const saved = connection
      ? put(`/connections/${connection.name}`, { fields })
      : post("/connections", { name, kind, fields });
    saved.then(onSaved).catch((error: unknown) => {
      setSaving(false);
      setRefused(problemText(error));
    });
  };
  const test = (node: string): Promise<ConnectionTested> =>
    connection
      ? post<ConnectionTested>(`/connections/${connection.name}/test`, { node, fields })
      : post<ConnectionTested>("/connection-test", { kind, node, fields });
  return (
    <Dialog
      open
      onClose={onClose}
      size="m"
      title={connection ? `Change ${connection.name}` : "New connection"}
      description="Elements use the connection by its name. Nobody can read its passwords again."
      footer={
        <>
          <button className="button" onClick={onClose}>
            Cancel
          </button>
          <button className="button button--primary" disabled={!ready || saving} onClick={save}>
            {connection ? "Save connection" : "Create connection"}
          </button>
        </>
      }
    >
      <div className="stack">
        {!connection && (
          <>
            <Text
              label="Name"
              value={name}
              onChange={setName}
              placeholder="plant-broker"
              maxLength={60}
              autoFocus
            />
            <Choice
              label="Kind"
              value={kind}
              options={kinds.map((each) => [each.kind, each.title] as [string, string])}
              onChange={(next) => {
                setKind(next);
                setTyped({});
              }}
            />
          </>
        )}
        {connection?.secrets_lost && (
          <p className="field__error">
            Fogline has another secret key now, so the stored passwords cannot be opened. Enter them again.
          </p>
        )}
        {Object.entries(form.properties ?? {}).map(([field, property]) => (
          <FieldOf
            key={field}
            name={field}
            property={plain(property)}
            value={typed[field]}
            stored={!!connection?.secrets.includes(field)}
            optional={!required.includes(field)}
            onChange={(value) => setTyped({ ...typed, [field]: value })}
          />
        ))}
        {refused && (
          <p className="field__error" role="alert">
            {refused}
          </p>
        )}
        {ready && (
          <TestPart
            run={test}
            accept={({ field, value }) => setTyped((now) => ({ ...now, [field]: value }))}
          />
        )}
      </div>
    </Dialog>
  );
}

function FieldOf({
  name,
  property,
  value,
  stored,
  optional,
  onChange,
}: {
  name: string;
  property: Property;
  value: unknown;
  /** a secret that is stored: it stays while the value is undefined, and goes when it is null */
  stored: boolean;
  optional: boolean;
  onChange: (value: unknown) => void;
}) {
  const id = useId();
  const label = property.title ?? name;
  const kept = stored && value === undefined;
  const help = property.description && <p className="field__help">{property.description}</p>;
  if (property.type === "boolean") {
    return (
      <label className="check">
        <input
          type="checkbox"
          checked={Boolean(value ?? property.default)}
          onChange={(event) => onChange(event.target.checked)}
        />
        {label}
      </label>
    );
  }
  if (property.enum) {
    return (
      <Choice
        label={label}
        value={String(value ?? property.default ?? property.enum[0])}
        options={property.enum.map((each) => [each, each] as [string, string])}
        onChange={onChange}
      />
    );
  }
  const number = property.type === "integer" || property.type === "number";
  const shared = {
    id,
    value: value == null ? "" : String(value),
    placeholder: kept
      ? "stays as it is"
      : stored && value === null
        ? "is removed"
        : property.default != null
          ? String(property.default)
          : undefined,
    spellCheck: false,
    onChange: (event: { target: { value: string } }) => {
      const text = event.target.value;
      onChange(
        text === "" ? (property["x-secret"] ? undefined : null) : number ? Number(text) || text : text,
      );
    },
  };
  const isLong = (property.maxLength ?? 0) > LONG && !/password|token/.test(name);
  return (
    <div className="field">
      <label className="field__label" htmlFor={id}>
        {label}
      </label>
      {isLong ? (
        <textarea className="textarea mono" rows={3} {...shared} />
      ) : (
        <input
          className="input"
          type={property["x-secret"] ? "password" : "text"}
          autoComplete="new-password"
          inputMode={number ? "numeric" : undefined}
          {...shared}
        />
      )}
      {stored && optional && (
        <button
          className="button button--quiet button--small"
          onClick={() => onChange(kept ? null : undefined)}
        >
          {kept ? `Remove: ${label}` : `Keep as it is: ${label}`}
        </button>
      )}
      {help}
    </div>
  );
}
