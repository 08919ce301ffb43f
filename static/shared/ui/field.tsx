/** Labelled fields of forms, with their faults. */
import { useId, type ReactNode } from "react";

function Field({
  id,
  label,
  fault,
  alert,
  children,
}: {
  id: string;
  label: string;
  fault?: string | null;
  alert?: boolean;
  children: ReactNode;
}) {
  return (
    <div className="field">
      <label className="field__label" htmlFor={id}>
        {label}
      </label>
      {children}
      {fault && (
        <p className="field__error" role={alert ? "alert" : undefined}>
          {fault}
        </p>
      )}
    </div>
  );
}

export function Text({
  label,
  value,
  onChange,
  onEnter,
  fault,
  alert,
  number,
  placeholder,
  known,
  maxLength,
  autoFocus,
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  onEnter?: () => void;
  fault?: string | null;
  /** the fault is read out at once: it came after something was sent */
  alert?: boolean;
  number?: boolean;
  placeholder?: string;
  /** what is offered while one types */
  known?: readonly string[];
  maxLength?: number;
  autoFocus?: boolean;
}) {
  const id = useId();
  return (
    <Field id={id} label={label} fault={fault} alert={alert}>
      <input
        className="input"
        id={id}
        list={known && `${id}-known`}
        inputMode={number ? "decimal" : undefined}
        value={value}
        placeholder={placeholder}
        autoFocus={autoFocus}
        maxLength={maxLength}
        spellCheck={false}
        aria-invalid={!!fault}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => event.key === "Enter" && onEnter?.()}
      />
      {known && (
        <datalist id={`${id}-known`}>
          {known.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      )}
    </Field>
  );
}

export function Choice<T extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: T;
  options: [T, string][];
  onChange: (value: T) => void;
}) {
  const id = useId();
  return (
    <Field id={id} label={label}>
      <select
        className="select"
        id={id}
        value={value}
        onChange={(event) => onChange(event.target.value as T)}
      >
        {options.map(([key, words]) => (
          <option key={key} value={key}>
            {words}
          </option>
        ))}
      </select>
    </Field>
  );
}
