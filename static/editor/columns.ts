/**
 * The columns that an element's parameters name, whether a stream has them, and changes that mend it.
 * Pure.
 */
import { typesNeeded, typeWords } from "../shared/column-types";
import { listed } from "../shared/format";
import type {
  Fault,
  JsonSchema,
  Operator,
  PipelineDocument,
  SchemaField,
  StreamSchema,
} from "../shared/types";
import { findElement, parseReference, placeOf, type PortRef } from "../shared/document";
import { addElement, changeElement, connect } from "./edits";
import { resolve, unwrap } from "./form/schema";

/** A parameter, or one entry of it, that names a column of the input. */
export interface ColumnUse {
  /** as the server's faults name it: params.aggregates[0].column */
  path: string;
  /** empty when none is chosen yet although one is needed */
  column: string;
  /** that the column may have; null: any */
  types: string[] | null;
}

/** A change that makes it fit. */
export interface Mend {
  title: string;
  /** the document with it; all of it is one step of undo */
  apply: (document: PipelineDocument) => PipelineDocument;
}

export interface Misfit extends ColumnUse {
  /** what is wrong, without the element's name */
  reason: string;
  /** names of the stream's columns that would do */
  fitting: string[];
  /** the type of the column of that name; null: there is none */
  found: string | null;
}

const MENDS_MAX = 3;

/** All columns that these parameters name, and those that they still have to. */
export function columnUses(root: JsonSchema, params: Record<string, unknown>): ColumnUse[] {
  return usesIn(root, params, root, "params", true, {});
}

function usesIn(
  property: JsonSchema,
  value: unknown,
  root: JsonSchema,
  path: string,
  required: boolean,
  beside: Record<string, unknown>,
): ColumnUse[] {
  const { schema } = unwrap(property, root);
  if (schema.format === "column") {
    if (typeof value === "string" && value) return [{ path, column: value, types: typesOf(schema, beside) }];
    return required && value == null ? [{ path, column: "", types: typesOf(schema, beside) }] : [];
  }
  if (schema.type === "array") {
    const item = resolve((schema.items ?? {}) as JsonSchema, root);
    // of a list that needs an entry, the first one is still to come
    const items =
      Array.isArray(value) && value.length > 0 ? value : required && schema.minItems ? [undefined] : [];
    if (items[0] === undefined && item.format !== "column") return [];
    return items.flatMap((each, index) => usesIn(item, each, root, `${path}[${index}]`, true, {}));
  }
  if (schema.properties && value && typeof value === "object") {
    const object = value as Record<string, unknown>;
    const needed = new Set((schema.required as string[] | undefined) ?? []);
    return Object.entries(schema.properties as Record<string, JsonSchema>).flatMap(([name, each]) =>
      usesIn(each, object[name], root, `${path}.${name}`, needed.has(name), object),
    );
  }
  return [];
}

/** `x-column`: {types, unless: {another parameter: the values with which any type will do}}. */
export function typesOf(schema: JsonSchema, beside: Record<string, unknown>): string[] | null {
  const hint = schema["x-column"] as { types?: string[]; unless?: Record<string, unknown[]> } | undefined;
  if (!hint?.types) return null;
  const free = Object.entries(hint.unless ?? {}).some(([name, values]) => values.includes(beside[name]));
  return free ? null : hint.types;
}

/** The columns of the parameters that a stream does not have in the needed type. */
export function misfits(operator: Operator, params: Record<string, unknown>, stream: StreamSchema): Misfit[] {
  return columnUses(operator.params_schema, params).flatMap((use) => {
    const fields = stream.fields;
    const fits = (field: SchemaField) => !use.types || use.types.includes(field.type);
    const fitting = fields.filter(fits).map((field) => field.name);
    const found = fields.find((field) => field.name === use.column);
    if (found ? fits(found) : !use.column && fitting.length > 0) return [];
    const reason = found
      ? `${found.name} is ${typeWords(found.type)}, but that parameter needs ${typesNeeded(use.types ?? [])}.`
      : use.column
        ? `The stream has no column ${use.column}, which that parameter names.`
        : `It needs ${typesNeeded(use.types ?? []) || "a column"}, and the stream has ${
            fields.length ? `only ${described(fields)}` : "no columns"
          }.`;
    return [{ ...use, reason, fitting, found: found?.type ?? null }];
  });
}

const described = (fields: readonly SchemaField[]): string => {
  const some = fields.slice(0, 4).map((field) => `${field.name} (${typeWords(field.type)})`);
  return listed(fields.length > 4 ? [...some, `${fields.length - 4} more`] : some);
};

/**
 * Ways to make `to` read `from`, which is connected with the same step: another column that fits, or an
 * element between that converts the column.
 */
export function mends(
  operators: ReadonlyMap<string, Operator>,
  misfit: Misfit,
  stream: StreamSchema,
  from: PortRef,
  to: PortRef,
): Mend[] {
  const choose = misfit.fitting.slice(0, MENDS_MAX).map((column) => ({
    title: insteadTitle(column),
    apply: (document: PipelineDocument) =>
      connect(withParam(document, to.element, misfit.path, column), from, to),
  }));
  const derive = operators.get("derive");
  const target = misfit.types?.includes("number") ? "number" : misfit.types?.[0];
  if (!derive || !target) return choose;
  const unfit = misfit.column
    ? stream.fields.filter((field) => field.name === misfit.column)
    : stream.fields.slice(0, MENDS_MAX);
  const convert = unfit.map((field) => ({
    title: `Convert ${field.name} to ${typesNeeded([target])}`,
    apply: (document: PipelineDocument) => {
      const named = misfit.column ? document : withParam(document, to.element, misfit.path, field.name);
      return withConversion(named, derive, field.name, target, from, to);
    },
  }));
  return [...choose, ...convert];
}

/** With an element between the two that gives the column the type; the rows whose value is none are refused. */
function withConversion(
  document: PipelineDocument,
  derive: Operator,
  column: string,
  type: string,
  from: PortRef,
  to: PortRef,
): PipelineDocument {
  const placeIn = (id: string) => {
    const element = findElement(document, id);
    return element && placeOf(element);
  };
  const start = placeIn(from.element) ?? { x: 0, y: 0 };
  const end = placeIn(to.element) ?? start;
  const at = { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 };
  const added = addElement(document, derive, at);
  const converting = changeElement(added.document, added.id, {
    title: `${column} as ${typesNeeded([type])}`,
    params: { columns: [{ name: column, expression: `cast(\`${column}\` as ${type})` }] },
  });
  return connect(
    connect(converting, from, { element: added.id, port: "in" }),
    { element: added.id, port: "out" },
    to,
  );
}

function withParam(document: PipelineDocument, id: string, path: string, column: string): PipelineDocument {
  const element = findElement(document, id);
  const steps = [...path.matchAll(/[^.[\]]+/g)].map(([step]) => step).slice(1);
  const params = placed(element?.params, steps, column) as Record<string, unknown>;
  return changeElement(document, id, { params });
}

function placed(value: unknown, [step, ...rest]: string[], column: string): unknown {
  if (step === undefined) return column;
  if (/^\d+$/.test(step)) {
    const items = Array.isArray(value) ? [...(value as unknown[])] : [];
    items[Number(step)] = placed(items[Number(step)], rest, column);
    return items;
  }
  const object = (value ?? {}) as Record<string, unknown>;
  return { ...object, [step]: placed(object[step], rest, column) };
}

/** A fault of an element, with the path below the element. */
type ColumnFault = Pick<Fault, "instead"> & { local: string };

/** What mends an element's columns, by the path of the parameter: other columns first, conversions after them. */
export function mendsOf(
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
  schemas: Readonly<Record<string, StreamSchema>>,
  id: string,
  faults: readonly ColumnFault[] = [],
): Record<string, Mend[]> {
  const found = insteadOf(id, faults);
  for (const [path, more] of Object.entries(mendsOfColumns(document, operators, schemas, id))) {
    const known = found[path] ?? [];
    found[path] = [...known, ...more.filter(({ title }) => known.every((mend) => mend.title !== title))];
  }
  return found;
}

/** What the server says would do in place of a parameter, expressions among them. */
function insteadOf(id: string, faults: readonly ColumnFault[]): Record<string, Mend[]> {
  const found: Record<string, Mend[]> = {};
  for (const { local, instead } of faults) {
    if (!instead?.length) continue;
    found[local] = instead.map(({ column, value }) => ({
      title: insteadTitle(column),
      apply: (document) => withParam(document, id, local, value),
    }));
  }
  return found;
}

const insteadTitle = (column: string): string => `Use ${column} instead`;

function mendsOfColumns(
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
  schemas: Readonly<Record<string, StreamSchema>>,
  id: string,
): Record<string, Mend[]> {
  const element = findElement(document, id);
  const operator = element && operators.get(element.type);
  const port = operator?.inputs.length === 1 ? operator.inputs[0]?.name : undefined;
  const reference = port && element?.inputs?.[port];
  if (!element || !operator || !port || !reference) return {};
  const from = parseReference(reference);
  const stream = schemas[`${from.element}.${from.port}`];
  if (!stream) return {};
  return Object.fromEntries(
    misfits(operator, element.params ?? {}, stream)
      .filter((misfit) => misfit.column)
      .map((misfit) => [misfit.path, mends(operators, misfit, stream, from, { element: id, port })]),
  );
}
