/** Which uploaded files a field takes. */
import type { JsonSchema } from "../../shared/types";

const DATA = [".csv", ".tsv", ".txt", ".gz", ".json", ".jsonl"];
const MODELS = [".onnx"];

/** The ends of names that a chooser offers; a schema says others by `x-accept`. */
export const acceptOf = (schema: JsonSchema): string[] =>
  (schema["x-accept"] as string[] | undefined) ?? DATA;

/** Data may be called anything, but not as a model is. */
export function isFor(schema: JsonSchema, name: string): boolean {
  const ends = (suffix: string) => name.toLowerCase().endsWith(suffix);
  const special = schema["x-accept"] as string[] | undefined;
  return special ? special.some(ends) : !MODELS.some(ends);
}
