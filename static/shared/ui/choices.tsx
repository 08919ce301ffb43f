import { useId, type ReactNode } from "react";
import "./choices.css";

export interface Choice<T extends string> {
  value: T;
  title: string;
  /** a word beside the title: "default", "standby" */
  tag?: string;
  note?: ReactNode;
  /** a figure at the right */
  aside?: ReactNode;
  /** why it cannot be chosen now: shown in place of the note */
  disabled?: string | null;
}

/** One of several, each with its consequence in a sentence. */
export function Choices<T extends string>({
  legend,
  value,
  choices,
  onChange,
}: {
  legend: string;
  value: T | null;
  choices: Choice<T>[];
  onChange: (value: T) => void;
}) {
  const id = useId();
  return (
    <fieldset className="choices">
      <legend className="field__label">{legend}</legend>
      {choices.map((choice) => {
        const note = choice.disabled || choice.note;
        const at = `${id}-${choice.value}`;
        return (
          <label
            key={choice.value}
            className={`choice${choice.value === value ? " choice--chosen" : ""}${choice.disabled ? " choice--off" : ""}`}
          >
            <input
              type="radio"
              name={id}
              value={choice.value}
              checked={choice.value === value}
              disabled={!!choice.disabled}
              aria-labelledby={`${at}-title`}
              aria-describedby={note ? `${at}-note` : undefined}
              onChange={() => onChange(choice.value)}
            />
            <span className="choice__text">
              <span className="row row--wrap">
                <b id={`${at}-title`}>{choice.title}</b>
                {choice.tag && <span className="badge">{choice.tag}</span>}
              </span>
              {note && (
                <span id={`${at}-note`} className="choice__note">
                  {note}
                </span>
              )}
            </span>
            {choice.aside && <span className="choice__aside num">{choice.aside}</span>}
          </label>
        );
      })}
    </fieldset>
  );
}
