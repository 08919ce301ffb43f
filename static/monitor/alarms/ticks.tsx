import { useId } from "react";

/** Some of several things. */
export function Ticks<T extends string | number>({
  legend,
  options,
  chosen,
  onChange,
}: {
  legend: string;
  options: readonly (readonly [T, string])[];
  chosen: readonly T[];
  onChange: (chosen: T[]) => void;
}) {
  const id = useId();
  return (
    <fieldset className="alarm-ticks">
      <legend className="field__label">{legend}</legend>
      {options.map(([value, title]) => (
        <label key={String(value)} className="check" htmlFor={`${id}-${value}`}>
          <input
            id={`${id}-${value}`}
            type="checkbox"
            checked={chosen.includes(value)}
            onChange={(event) =>
              onChange(event.target.checked ? [...chosen, value] : chosen.filter((each) => each !== value))
            }
          />
          {title}
        </label>
      ))}
    </fieldset>
  );
}
