import { useContext, useEffect, useState } from "react";
import { typedNumber } from "../../shared/numbers";
import { Context, type LeafProps } from "./leaves";
import { choicesOf, chosenOf, words, type Choice } from "./schema";

/** A value that is chosen from a few choices in words; some choices ask for a number. */
export function ChoiceControl({ field, value, onChange, id }: LeafProps) {
  const { readOnly, lacks, row } = useContext(Context);
  const choices = choicesOf(field.schema);
  const chosen = chosenOf(choices, value ?? field.default);
  return (
    <div className="asks">
      {choices.map((choice, index) => {
        const why = index !== chosen && choice.needs ? lacks[choice.needs] : undefined;
        return (
          <div key={choice.title} className="ask">
            <div className="ask__line">
              <input
                type="radio"
                name={id}
                id={`${id}-${index}`}
                checked={index === chosen}
                disabled={readOnly || why !== undefined}
                onChange={() => onChange("value" in choice ? choice.value : choice.given, field.path)}
              />
              {"given" in choice && (
                <Given
                  label={words(field.name)}
                  choice={choice}
                  value={index === chosen ? value : undefined}
                  readOnly={readOnly}
                  onChange={(next) => onChange(next, field.path)}
                />
              )}
              <label htmlFor={`${id}-${index}`} className={why ? "muted" : undefined}>
                {choice.title}
              </label>
            </div>
            {why && <p className="field__help">{why}</p>}
            {index === chosen && (
              <>
                {choice.help && <p className="field__help">{choice.help}</p>}
                {choice.with?.map(row)}
              </>
            )}
          </div>
        );
      })}
    </div>
  );
}

/**
 * The number of a choice. While it is empty the last value holds. The server reports text that is not a
 * number.
 */
function Given({
  label,
  choice,
  value,
  readOnly,
  onChange,
}: {
  label: string;
  choice: Choice;
  value: unknown;
  readOnly: boolean;
  onChange: (value: unknown) => void;
}) {
  const shown = String(value ?? choice.given);
  const [text, setText] = useState(shown);
  useEffect(() => setText((old) => (typedNumber(old) === Number(shown) ? old : shown)), [shown]);
  return (
    <input
      className="input num ask__given"
      aria-label={label}
      inputMode="decimal"
      value={text}
      readOnly={readOnly}
      onChange={(event) => {
        const next = event.target.value;
        setText(next);
        if (next.trim()) onChange(Number.isNaN(typedNumber(next)) ? next : typedNumber(next));
      }}
      onBlur={() => setText(shown)}
    />
  );
}
