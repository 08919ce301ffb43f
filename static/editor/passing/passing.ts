/** What passes at a port or in a stream: columns, what is wrong there, and why columns are not known. Pure. */
import { typeWords } from "../../shared/column-types";
import { findElement, nameOfId, parseReference, type PortRef } from "../../shared/document";
import { plural } from "../../shared/format";
import type { Fault, Operator, PipelineDocument, SchemaField, StreamSchema } from "../../shared/types";
import { faultsOf, type LocatedFault } from "../store";

export interface Place extends PortRef {
  side: "in" | "out";
}

/** What the checks of the draft said last. */
export interface Checked {
  document: PipelineDocument;
  operators: ReadonlyMap<string, Operator>;
  schemas: Readonly<Record<string, StreamSchema>>;
  faults: Fault[];
}

export interface Passing {
  schema: StreamSchema | undefined;
  /** what the reader cannot take */
  wrong: string[];
  /** while the columns are not known */
  why: string[];
}

const WHY_MAX = 3;
/** Columns in one text for a screen reader. */
const SAID_MAX = 20;

export function passing(checked: Checked, { side, element, port }: Place): Passing {
  const reference = findElement(checked.document, element)?.inputs?.[port];
  const from = side === "out" ? { element, port } : reference ? parseReference(reference) : null;
  const schema = from ? checked.schemas[`${from.element}.${from.port}`] : undefined;
  const wrong =
    side === "in"
      ? faultsOf(checked.faults, checked.document, element)
          .filter((fault) => isOfInput(fault, port))
          .map(({ message }) => message)
      : [];
  if (!from) return { schema, wrong: [], why: ["Nothing is connected here yet."] };
  return { schema, wrong, why: schema ? [] : whyUnknown(checked, from.element) };
}

/** The stream does not fit its reader, or cannot be read at all. */
export const isOfInput = ({ code, local }: LocatedFault, port: string): boolean =>
  code === "schema" || local === `inputs.${port}` || local === "inputs";

/** The problems nearest to an element, at it or before it, that leave its columns unknown. */
function whyUnknown({ document, operators, faults }: Checked, id: string): string[] {
  const seen = new Set<string>();
  const told: string[] = [];
  const open = [id];
  for (let each = open.shift(); each !== undefined; each = open.shift()) {
    if (seen.has(each)) continue;
    seen.add(each);
    const found = faultsOf(faults, document, each);
    const name = nameOfId(document, operators, each);
    told.push(...found.map(({ message }) => `${name}: ${message}`));
    if (found.length > 0) continue;
    const inputs = Object.values(findElement(document, each)?.inputs ?? {});
    open.push(...inputs.map((reference) => parseReference(reference).element));
  }
  return told.length > 0 ? told.slice(0, WHY_MAX) : ["The columns are not known yet."];
}

/** "number, kW" */
export const fieldWords = ({ type, unit }: SchemaField): string =>
  unit ? `${typeWords(type)}, ${unit}` : typeWords(type);

/** "Columns: machine (text, key), power (number, kW)." */
function columnWords(schema: StreamSchema): string {
  const some = schema.fields
    .slice(0, SAID_MAX)
    .map((field) => `${field.name} (${fieldWords(field)}${schema.key === field.name ? ", key" : ""})`);
  const more = schema.fields.length - some.length;
  const all = more > 0 ? [...some, `and ${plural(more, "more column")}`] : some;
  return all.length > 0 ? `Columns: ${all.join(", ")}.` : "No columns.";
}

/** All of it as one text. */
export const passingWords = ({ schema, wrong, why }: Passing): string =>
  [...wrong, schema ? columnWords(schema) : "", ...why].filter(Boolean).join(" ");
