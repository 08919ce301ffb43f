/** Changes to the rows of a condition, and what a row still needs. Pure. */
import { twoWays, typedNumber } from "../../shared/numbers";
import type { SchemaField } from "../../shared/types";
import { comparisonsFor, valuesOf, type Condition, type Row, type Value, type ValueKind } from "./condition";

type Columns = readonly SchemaField[];

/** As `cast(... as timestamp)` reads it: docs/reference/operators.md, "What an expression gives". */
const TIME = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/;

const KINDS: Record<SchemaField["type"], ValueKind> = {
  integer: "number",
  number: "number",
  string: "text",
  boolean: "text",
  timestamp: "time",
};

/** Columns that every row of a stream has. */
const OWN: Columns = [
  { name: "_key", type: "string" },
  { name: "_time", type: "timestamp" },
  { name: "_batch_time", type: "timestamp" },
];

export const columnOf = (columns: Columns, name: string): SchemaField | undefined =>
  [...columns, ...OWN].find((column) => column.name === name);

const NUMBERS = ["integer", "number"];

/** The other columns that a column can be compared with. */
export const comparable = (columns: Columns, name: string): SchemaField[] => {
  const type = columnOf(columns, name)?.type;
  return columns.filter(
    (column) =>
      column.name !== name &&
      (type === undefined ||
        column.type === type ||
        (NUMBERS.includes(column.type) && NUMBERS.includes(type))),
  );
};

/** A row that can be filled in, for the first column. */
export function newRow(columns: Columns): Row {
  const blank: Row = { column: "", comparison: ">", values: [{ kind: "number", text: "", blank: true }] };
  return columns[0] ? withColumn(blank, columns[0].name, columns) : blank;
}

/** The row about another column. What fits its type stays. */
export function withColumn(row: Row, name: string, columns: Columns): Row {
  const type = columnOf(columns, name)?.type;
  const offered = comparisonsFor(type);
  const comparison = offered.includes(row.comparison) ? row.comparison : (offered[0] as string);
  const values = row.values.map((value) =>
    value.kind === "column" || type === undefined ? value : { ...value, kind: KINDS[type] },
  );
  return withComparison({ column: name, comparison, values }, comparison, columns);
}

export function withComparison(row: Row, comparison: string, columns: Columns): Row {
  const wanted = valuesOf(comparison) ?? Math.max(1, row.values.length);
  const values = [...row.values];
  while (values.length < wanted) values.push(emptyValue(row.column, columns));
  return { ...row, comparison, values: values.slice(0, wanted) };
}

export const emptyValue = (column: string, columns: Columns): Value => ({
  kind: KINDS[columnOf(columns, column)?.type ?? "number"],
  text: "",
  blank: true,
});

/** What a row needs before it can be written; empty: nothing. */
export function lackOf({ column, values }: Row): string {
  if (!column) return "Choose a column.";
  for (const { kind, text, blank } of values) {
    if (kind === "text" && blank) return "Type a text.";
    if (kind === "number" && Number.isNaN(typedNumber(text))) {
      const wrong = twoWays(text) ?? `${text.trim()} is not a number, such as 0.5.`;
      return text.trim() ? wrong : "Type a number.";
    }
    if (kind === "time" && !TIME.test(text.trim()))
      return text.trim() ? `${text.trim()} is not a time, such as 2024-05-01 12:30.` : "Type a time.";
    if (kind === "column" && !text) return "Choose the column to compare with.";
  }
  return "";
}

export const isComplete = ({ groups }: Condition): boolean => groups.flat().every((row) => !lackOf(row));

/** With another row, or without it (null). A group without rows goes. */
export function withRow(condition: Condition, group: number, index: number, row: Row | null): Condition {
  const groups = condition.groups.map((rows, at) =>
    at === group ? rows.flatMap((each, place) => (place === index ? (row ? [row] : []) : [each])) : rows,
  );
  return { ...condition, groups: groups.filter((rows) => rows.length > 0) };
}

/** With a row after those of a group; the group that follows the last one is new. */
export function withNewRow(condition: Condition, group: number, columns: Columns): Condition {
  const groups = [...condition.groups];
  groups[group] = [...(groups[group] ?? []), newRow(columns)];
  return { ...condition, groups };
}

export const swapped = (condition: Condition): Condition => ({
  ...condition,
  inner: condition.inner === "and" ? "or" : "and",
});
