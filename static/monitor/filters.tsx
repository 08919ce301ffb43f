/** One choice of a filter. An empty value means all. */
export function FilterSelect({
  label,
  all,
  value,
  options,
  onChange,
}: {
  label: string;
  all: string;
  value: string;
  /** value and title; a value that the address names and nobody knows is offered too */
  options: readonly (readonly [string, string])[];
  onChange: (value: string) => void;
}) {
  const known = options.some(([each]) => each === value);
  return (
    <select
      className="select"
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    >
      <option value="">{all}</option>
      {!known && value && <option value={value}>{value}</option>}
      {options.map(([each, title]) => (
        <option key={each} value={each}>
          {title}
        </option>
      ))}
    </select>
  );
}
