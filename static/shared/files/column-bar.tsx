/** How the chosen column is read, and the way to read others alike. */
import { useId } from "react";
import { plural } from "../format";
import { applyToLike, changeColumn, columnsLike, type ColumnChange } from "./reading";
import type { ColumnReading, FieldType, Reading, Source } from "./types";
import type { Decision } from "./use-decision";
import { BESIDES, missingOf, missingText, TIME_FORMATS, TYPES, type Options } from "./words";

const MARKS = [
  ["", "as the file"],
  ["./", "1000.5"],
  ["./,", "1,000.5"],
  [",/", "1000,5"],
  [",/.", "1.000,5"],
  [",/ ", "1 000,5"],
] as const;

export function ColumnBar({
  decision,
  column,
  onChoose,
}: {
  decision: Decision;
  column: Source | null;
  onChoose: (column: Source | null) => void;
}) {
  const { detection, changes, change, reading } = decision;
  const out = detection.reading.columns.filter(({ source }) => changes.columns[String(source)]?.out);
  const found = reading.columns.find(({ source }) => source === column);
  const put = (source: Source, next: ColumnChange) => change(changeColumn(changes, source, next));
  const back = out.length > 0 && (
    <LeftOut
      columns={out}
      onTake={(source) => {
        put(source, { out: false });
        onChoose(source);
      }}
    />
  );
  if (!found)
    return (
      <div className="pane__bar">
        <span className="muted">Choose a column to change its name, type or unit, or to leave it out.</span>
        {back}
      </div>
    );
  const like = columnsLike(detection, changes, found.source);
  return (
    <div className="pane__bar" role="group" aria-label={`Column ${found.name}`}>
      <Short
        label="Name"
        value={found.name}
        max={120}
        onChange={(name) => put(found.source, { name })}
        wide
      />
      <Type value={found.type} onChange={(type) => put(found.source, { type })} />
      <Short
        label="Unit"
        value={found.unit ?? ""}
        max={40}
        onChange={(unit) => put(found.source, { unit: unit.trim() || null })}
      />
      {["number", "integer"].includes(found.type) && (
        <>
          <Marks column={found} onChange={(next) => put(found.source, next)} />
          <Known
            label="Beside it"
            key={`beside ${found.source}`}
            value={found.beside}
            known={BESIDES}
            empty="nothing"
            hint="The text beside each number: a unit, or ± for signs and exponents in another form"
            onChange={(beside) => put(found.source, { beside })}
          />
        </>
      )}
      {found.type === "timestamp" && !isTheTime(reading, found) && (
        <Known
          label="Written"
          key={`format ${found.source}`}
          value={found.format ?? ""}
          known={TIME_FORMATS}
          empty="as ISO 8601"
          hint="How the times of this column are written"
          onChange={(format) => put(found.source, { format: format || null })}
        />
      )}
      <Missing
        key={String(found.source)}
        value={found.missing}
        file={reading.missing}
        onChange={(missing) => put(found.source, { missing })}
      />
      <button
        type="button"
        className="button button--small"
        onClick={() => {
          put(found.source, { out: true });
          onChoose(null);
        }}
      >
        Leave out
      </button>
      {like.length > 0 && (
        <button
          type="button"
          className="button button--small button--accent"
          title="The other columns of this type are then read as you have set this one"
          onClick={() => change(applyToLike(detection, changes, found.source))}
        >
          Do the same for {plural(like.length, "column")} like it
        </button>
      )}
      {back}
    </div>
  );
}

function Short({
  label,
  value,
  max,
  wide,
  onChange,
}: {
  label: string;
  value: string;
  max: number;
  wide?: boolean;
  onChange: (value: string) => void;
}) {
  const id = useId();
  return (
    <span className="inline-field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        className={`input input--small${wide ? " input--wide" : ""}`}
        value={value}
        maxLength={max}
        spellCheck={false}
        onChange={(event) => onChange(event.target.value)}
      />
    </span>
  );
}

const isTheTime = ({ time }: Reading, { source }: ColumnReading): boolean =>
  time?.columns.length === 1 && time.columns[0] === source;

/** A text of which some are known. It counts when it is left, or with Enter. */
function Known({
  label,
  value,
  known,
  empty,
  hint,
  onChange,
}: {
  label: string;
  value: string;
  known: Options;
  empty: string;
  hint: string;
  onChange: (value: string) => void;
}) {
  const id = useId();
  const take = (text: string) => {
    const said = known.some(([each]) => each === text) ? text : text.trim();
    if (said !== value) onChange(said);
  };
  return (
    <span className="inline-field" title={hint}>
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        className="input input--small"
        defaultValue={value}
        placeholder={empty}
        maxLength={40}
        list={`${id}-known`}
        spellCheck={false}
        onBlur={(event) => take(event.target.value)}
        onKeyDown={(event) => event.key === "Enter" && take(event.currentTarget.value)}
      />
      <datalist id={`${id}-known`}>
        {known.map(([each, words]) => each && <option key={each} value={each} label={words} />)}
      </datalist>
    </span>
  );
}

function Type({ value, onChange }: { value: FieldType; onChange: (type: FieldType) => void }) {
  const id = useId();
  return (
    <span className="inline-field">
      <label htmlFor={id}>Read as</label>
      <select
        id={id}
        className="select select--small"
        value={value}
        onChange={(event) => onChange(event.target.value as FieldType)}
      >
        {TYPES.map(([type, words]) => (
          <option key={type} value={type}>
            {words}
          </option>
        ))}
      </select>
    </span>
  );
}

function Marks({ column, onChange }: { column: ColumnReading; onChange: (next: ColumnChange) => void }) {
  const id = useId();
  const value = column.decimal === null ? "" : `${column.decimal}/${column.thousands ?? ""}`;
  return (
    <span className="inline-field">
      <label htmlFor={id}>Written</label>
      <select
        id={id}
        className="select select--small"
        value={value}
        onChange={(event) => {
          const [decimal, thousands] = event.target.value.split("/");
          onChange(
            decimal
              ? { decimal: decimal as "." | ",", thousands: (thousands ?? "") as ColumnReading["thousands"] }
              : { decimal: null, thousands: null },
          );
        }}
      >
        {!MARKS.some(([each]) => each === value) && <option value={value}>{value}</option>}
        {MARKS.map(([each, words]) => (
          <option key={each} value={each}>
            {words}
          </option>
        ))}
      </select>
    </span>
  );
}

/** What means "no value" in this column alone; empty: what means it in the whole file. */
function Missing({
  value,
  file,
  onChange,
}: {
  value: string[] | null;
  file: string[];
  onChange: (missing: string[] | null) => void;
}) {
  const id = useId();
  return (
    <span className="inline-field">
      <label htmlFor={id}>No value</label>
      <input
        id={id}
        className="input input--small"
        defaultValue={value === null ? "" : missingText(value)}
        placeholder={missingText(file)}
        spellCheck={false}
        onBlur={(event) => {
          const next = event.target.value.trim() ? missingOf(event.target.value) : null;
          if (JSON.stringify(next) !== JSON.stringify(value)) onChange(next);
        }}
      />
    </span>
  );
}

function LeftOut({
  columns,
  onTake,
}: {
  columns: readonly ColumnReading[];
  onTake: (source: Source) => void;
}) {
  return (
    <select
      className="select select--small"
      aria-label="Columns that are left out"
      value=""
      onChange={(event) => {
        const found = columns.find(({ source }) => String(source) === event.target.value);
        if (found) onTake(found.source);
      }}
    >
      <option value="">{plural(columns.length, "column")} left out</option>
      {columns.map(({ source, name }) => (
        <option key={source} value={String(source)}>
          Take {name} again
        </option>
      ))}
    </select>
  );
}
