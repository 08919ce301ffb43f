/** Reading an operator's JSON Schema: what kind of control each value needs. Pure. */
import type { JsonSchema } from "../../shared/types";
import { stable } from "../merge";

type Kind =
  | "boolean"
  | "enum"
  | "integer"
  | "number"
  | "string"
  | "file"
  | "alarm"
  | "list"
  | "object"
  | "map"
  | "union"
  | "choices"
  | "json";

/**
 * A choice in words: `x-choices` of a parameter. It has a `value`, or it asks for a number that starts as
 * `given`.
 */
export interface Choice {
  title: string;
  value?: unknown;
  given?: number;
  /** what of the chosen file this choice needs: `time` */
  needs?: string;
  /** parameters that belong to it, drawn with it */
  with?: string[];
  help?: string;
}

export interface Field {
  name: string;
  path: string;
  title: string;
  description: string;
  schema: JsonSchema;
  kind: Kind;
  required: boolean;
  nullable: boolean;
  default: unknown;
  /** a value that works, shown as placeholder */
  example: unknown;
  /** the object that it is a part of, below the parameters themselves */
  beside?: Record<string, unknown>;
}

/** The schema that `$ref`s and one-part `allOf`s lead to, with the keywords beside them. */
export function resolve(schema: JsonSchema, root: JsonSchema): JsonSchema {
  if (typeof schema.$ref === "string") {
    const { $ref, ...beside } = schema;
    const target = ($ref as string)
      .replace(/^#\//, "")
      .split("/")
      .reduce<JsonSchema | undefined>((at, part) => at?.[part] as JsonSchema | undefined, root);
    return { ...resolve(target ?? {}, root), ...beside };
  }
  if (Array.isArray(schema.allOf) && schema.allOf.length === 1) {
    const { allOf, ...beside } = schema;
    return { ...resolve((allOf as JsonSchema[])[0] ?? {}, root), ...beside };
  }
  return schema;
}

/** Without "or null": the schema of the value itself, and whether null is allowed. */
export function unwrap(schema: JsonSchema, root: JsonSchema): { schema: JsonSchema; nullable: boolean } {
  const resolved = resolve(schema, root);
  if (!Array.isArray(resolved.anyOf)) return { schema: resolved, nullable: false };
  const { anyOf, ...beside } = resolved;
  const parts = (anyOf as JsonSchema[]).map((part) => resolve(part, root));
  const others = parts.filter((part) => part.type !== "null");
  const nullable = others.length < parts.length;
  if (others.length === 1) return { schema: { ...others[0], ...beside }, nullable };
  return { schema: { ...beside, anyOf: others }, nullable };
}

export function kindOf(schema: JsonSchema): Kind {
  if (Array.isArray(schema["x-choices"])) return "choices";
  if (schema.const !== undefined) return "enum";
  if (Array.isArray(schema.enum)) return "enum";
  if (Array.isArray(schema.oneOf) || Array.isArray(schema.anyOf)) return "union";
  switch (schema.type) {
    case "boolean":
      return "boolean";
    case "integer":
      return "integer";
    case "number":
      return "number";
    case "string":
      return schema.format === "file" || schema.format === "alarm" ? schema.format : "string";
    case "array":
      return "list";
    case "object":
      return schema.properties ? "object" : "map";
    default:
      return "json";
  }
}

export const choicesOf = (schema: JsonSchema): Choice[] => (schema["x-choices"] as Choice[]) ?? [];

/** Which of the choices a value is: its own, else the one that asks for a number. */
export function chosenOf(choices: Choice[], value: unknown): number {
  const own = choices.findIndex((choice) => "value" in choice && choice.value === (value ?? null));
  return own >= 0 ? own : choices.findIndex((choice) => "given" in choice);
}

/** Names of the parameters that others draw beside themselves. */
export function drawnElsewhere(fields: Field[]): Set<string> {
  return new Set(fields.flatMap(({ schema }) => choicesOf(schema).flatMap((choice) => choice.with ?? [])));
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** If there are at least this many seldom used fields, they are folded away. */
const FOLD_MIN = 3;

/**
 * Fields that are always shown, and those under "More": optional ones that neither the value nor
 * the operator's example sets, and that do not ask to be seen at first.
 */
export function folded(fields: Field[], value: Record<string, unknown>): { shown: Field[]; more: Field[] } {
  const used = (field: Field) => {
    const given = value[field.name];
    return (
      field.required ||
      field.schema["x-first"] === true ||
      field.example !== undefined ||
      (given != null && stable(given) !== stable(field.default))
    );
  };
  const more = fields.filter((field) => !used(field));
  return more.length >= FOLD_MIN ? { shown: fields.filter(used), more } : { shown: fields, more: [] };
}

const UNITS: Record<string, string> = {
  s: "in seconds",
  ms: "in milliseconds",
  us: "in microseconds",
  hz: "in Hz",
  bytes: "in bytes",
  percent: "in percent",
};

/** `size_s` -> "Size, in seconds": names end in their unit. */
export const words = (name: string): string => {
  const [, stem, unit] = /^(.+)_(s|ms|us|hz|bytes|percent)$/.exec(name) ?? [];
  return stem && unit ? `${spaced(stem)}, ${UNITS[unit]}` : spaced(name);
};

const spaced = (name: string): string => {
  const text = name
    .replace(/[_-]+/g, " ")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .trim()
    .toLowerCase();
  return text.charAt(0).toUpperCase() + text.slice(1);
};

export function fieldOf(
  name: string,
  path: string,
  property: JsonSchema,
  root: JsonSchema,
  required: boolean,
  example?: unknown,
): Field {
  const { schema, nullable } = unwrap(property, root);
  // not the title of what a property refers to: that is the name of a class
  const { title } = property;
  return {
    name,
    path,
    // pydantic's own titles are the name in title case: sentence case reads better
    title:
      typeof title === "string" &&
      title.toLowerCase() !== name.replaceAll("_", " ").toLowerCase() &&
      schema.type !== "object"
        ? title
        : words(name),
    description: sentence((property.description as string | undefined) ?? ""),
    schema,
    kind: kindOf(schema),
    required,
    nullable,
    default: property.default,
    example: example ?? (Array.isArray(property.examples) ? property.examples[0] : undefined),
  };
}

export function fieldsOf(
  schema: JsonSchema,
  root: JsonSchema,
  path: string,
  example: unknown = undefined,
): Field[] {
  const required = new Set((schema.required as string[] | undefined) ?? []);
  const examples = example && typeof example === "object" ? (example as Record<string, unknown>) : {};
  return Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).map(([name, property]) =>
    fieldOf(name, `${path}.${name}`, property, root, required.has(name), examples[name]),
  );
}

/** A value for a new list item or a newly chosen variant. */
export function blank(schema: JsonSchema, root: JsonSchema): unknown {
  const { schema: inner, nullable } = unwrap(schema, root);
  if (inner.default !== undefined) return structuredClone(inner.default);
  if (inner.const !== undefined) return inner.const;
  switch (kindOf(inner)) {
    case "object": {
      const required = new Set((inner.required as string[] | undefined) ?? []);
      const entries = Object.entries(inner.properties as Record<string, JsonSchema>)
        .filter(
          ([name, property]) =>
            required.has(name) ||
            (property.default !== undefined && property.default !== null) ||
            property.const !== undefined,
        )
        .map(([name, property]) => [name, property.default ?? blank(property, root)]);
      return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
    }
    case "list":
      return [];
    case "map":
      return {};
    case "union":
      return blank(((inner.oneOf ?? inner.anyOf) as JsonSchema[])[0] ?? {}, root);
    case "boolean":
      return false;
    case "string":
      return nullable ? null : "";
    case "enum":
      return (inner.enum as unknown[] | undefined)?.[0];
    default:
      return undefined;
  }
}

const COLUMN_NAME =
  /^(column|columns|field|fields|key|keys|key_column|on|by|group_by|value|values|timestamp_column|time_column|x|y|left_key|right_key)$/;

/** Whether a text is probably the name of an input's column: the form then offers the columns. */
export function wantsColumn(field: Field): boolean {
  if (field.schema.format) return field.schema.format === "column";
  return (field.kind === "string" || field.kind === "list") && COLUMN_NAME.test(field.name);
}

/** Whether a text is an expression that is true or false: the form then offers rows. */
export const isCondition = ({ schema }: Field): boolean =>
  schema.format === "expression" && schema["x-result"] === "boolean";

/** The variant of a union that a value has: by its discriminating constants, else by its type. */
export function variantOf(value: unknown, variants: JsonSchema[]): number {
  const byConstant = variants.findIndex((variant) => {
    const constants = Object.entries((variant.properties ?? {}) as Record<string, JsonSchema>).filter(
      ([, property]) => property.const !== undefined,
    );
    return (
      constants.length > 0 &&
      constants.every(
        ([name, property]) => (value as Record<string, unknown> | null)?.[name] === property.const,
      )
    );
  });
  if (byConstant >= 0) return byConstant;
  const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  const byType = variants.findIndex(
    (variant) => variant.type === type || (type === "number" && variant.type === "integer"),
  );
  return Math.max(0, byType);
}

export function variantTitle(variant: JsonSchema, index: number): string {
  const constant = Object.values((variant.properties ?? {}) as Record<string, JsonSchema>).find(
    (property) => property.const !== undefined,
  )?.const;
  return String(constant ?? variant.title ?? variant.type ?? `Variant ${index + 1}`);
}

/** The faults that belong at a field: its own, and for a single value those below it. */
export function faultsAt<F extends { local: string }>(path: string, kind: Kind, faults: readonly F[]): F[] {
  const deep = !["object", "list", "map", "union"].includes(kind);
  return faults.filter(
    ({ local }) => local === path || (deep && (local.startsWith(`${path}.`) || local.startsWith(`${path}[`))),
  );
}
