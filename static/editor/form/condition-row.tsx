import { useContext, useState } from "react";
import { Columns3, Pencil, Plus, Trash2, X } from "lucide-react";
import { comparisonsFor, comparisonWords, valuesOf, type Row, type Value } from "./condition";
import { columnOf, comparable, emptyValue, withColumn, withComparison } from "./condition-rows";
import { Context } from "./leaves";
import { Tool } from "./tool";

interface RowProps {
  row: Row;
  /** counted from 1, over all groups */
  number: number;
  /** what it needs before it counts */
  lack: string;
  onChange: (row: Row) => void;
  onRemove: () => void;
  onEnter: () => void;
}

/** One comparison of a column. */
export function ConditionRow({ row, number, lack, onChange, onRemove, onEnter }: RowProps) {
  const { readOnly, columns } = useContext(Context);
  const type = columnOf(columns, row.column)?.type;
  return (
    <div className="condition__row" role="group" aria-label={`Row ${number}`}>
      <Choice
        label={`Column of row ${number}`}
        value={row.column}
        options={columns.map(({ name }) => ({ value: name, words: name }))}
        foreign={`${row.column} (not in the stream)`}
        onChange={(name) => onChange(withColumn(row, name, columns))}
      />
      <Choice
        label={`Comparison of row ${number}`}
        value={row.comparison}
        options={comparisonsFor(type).map((name) => ({ value: name, words: comparisonWords(name) }))}
        foreign={comparisonWords(row.comparison)}
        onChange={(name) => onChange(withComparison(row, name, columns))}
      />
      <Values row={row} number={number} onChange={onChange} onEnter={onEnter} />
      {!readOnly && (
        <span className="condition__remove">
          <Tool label={`Remove row ${number}`} icon={<Trash2 />} run={onRemove} />
        </span>
      )}
      {lack && <p className="field__help condition__lack">{lack}</p>}
    </div>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  options: { value: string; words: string }[];
  /** words of a value that is not among the options */
  foreign: string;
  onChange: (value: string) => void;
}

/** A list to choose from; a field to type in if nothing is known, or was not when somebody came to it. */
function Choice({ label, value, options, foreign, onChange }: ChoiceProps) {
  const { readOnly } = useContext(Context);
  const [typing, setTyping] = useState(false);
  if (options.length === 0 || typing)
    return (
      <input
        className="input"
        aria-label={label}
        value={value}
        readOnly={readOnly}
        onFocus={() => setTyping(true)}
        onBlur={() => setTyping(false)}
        onChange={(event) => onChange(event.target.value)}
      />
    );
  return (
    <select
      className="select"
      aria-label={label}
      value={value}
      disabled={readOnly}
      onChange={(event) => onChange(event.target.value)}
    >
      {options.every((option) => option.value !== value) && (
        <option value={value}>{value ? foreign : "Choose…"}</option>
      )}
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.words}
        </option>
      ))}
    </select>
  );
}

type ValuesProps = Pick<RowProps, "row" | "number" | "onChange" | "onEnter">;

function Values({ row, number, onChange, onEnter }: ValuesProps) {
  const { readOnly, columns } = useContext(Context);
  const { values } = row;
  const wanted = valuesOf(row.comparison);
  const others = comparable(columns, row.column);
  const put = (index: number, value: Value | null) =>
    onChange({
      ...row,
      values: values.flatMap((each, at) => (at !== index ? [each] : value ? [value] : [])),
    });
  return (
    <div className="condition__values">
      {values.map((value, index) => {
        const label = `Value ${values.length > 1 ? `${index + 1} ` : ""}of row ${number}`;
        return (
          <div key={index} className="condition__value">
            <OneValue
              value={value}
              label={label}
              column={row.column}
              onChange={(next) => put(index, next)}
              onEnter={onEnter}
            />
            {!readOnly && wanted === 1 && (others.length > 0 || value.kind === "column") && (
              <Other
                value={value}
                number={number}
                column={row.column}
                onChange={(next) => put(index, next)}
              />
            )}
            {!readOnly && wanted === null && values.length > 1 && (
              <Tool label={`Remove ${label.toLowerCase()}`} icon={<X />} run={() => put(index, null)} />
            )}
            {!readOnly && wanted === null && index === values.length - 1 && (
              <Tool
                label={`Add a value to row ${number}`}
                icon={<Plus />}
                run={() => onChange({ ...row, values: [...values, emptyValue(row.column, columns)] })}
              />
            )}
          </div>
        );
      })}
    </div>
  );
}

interface ValueProps {
  value: Value;
  label: string;
  /** that it is compared with */
  column: string;
  onChange: (value: Value) => void;
  onEnter: () => void;
}

function OneValue({ value, label, column, onChange, onEnter }: ValueProps) {
  const { readOnly, columns } = useContext(Context);
  if (value.kind === "column")
    return (
      <Choice
        label={label}
        value={value.text}
        options={comparable(columns, column).map(({ name }) => ({ value: name, words: name }))}
        foreign={value.text}
        onChange={(name) => onChange({ kind: "column", text: name })}
      />
    );
  const unit = value.kind === "time" ? "UTC" : value.kind === "number" && columnOf(columns, column)?.unit;
  return (
    <>
      <input
        className={value.kind === "number" ? "input num" : "input"}
        aria-label={label}
        inputMode={value.kind === "number" ? "decimal" : undefined}
        placeholder={value.kind === "time" ? "2024-05-01 12:30" : undefined}
        autoComplete="off"
        spellCheck={false}
        value={value.text}
        readOnly={readOnly}
        onChange={(event) => onChange({ kind: value.kind, text: event.target.value })}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || readOnly) return;
          event.preventDefault();
          onEnter();
        }}
      />
      {unit && <span className="muted small">{unit}</span>}
    </>
  );
}

type OtherProps = Pick<ValueProps, "value" | "column" | "onChange"> & { number: number };

/** Turns a value into a column to compare with, and back. */
function Other({ value, number, column, onChange }: OtherProps) {
  const { columns } = useContext(Context);
  const isColumn = value.kind === "column";
  return (
    <Tool
      label={`Compare row ${number} with a ${isColumn ? "value" : "column"}`}
      icon={isColumn ? <Pencil /> : <Columns3 />}
      run={() =>
        onChange(
          isColumn
            ? emptyValue(column, columns)
            : { kind: "column", text: comparable(columns, column)[0]?.name ?? "" },
        )
      }
    />
  );
}
