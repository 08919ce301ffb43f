/** Which uploaded files a field takes. */
import type { JsonSchema } from "../../shared/types";

const DATA = [
  ".csv",
  ".tsv",
  ".txt",
  ".dat",
  ".gz",
  ".bz2",
  ".xz",
  ".zst",
  ".zip",
  ".xlsx",
  ".json",
  ".jsonl",
  ".ndjson",
  ".parquet",
];
const MODELS = [".onnx"];

/** The file name endings that a chooser offers; a schema sets others with `x-accept`. */
export const acceptOf = (schema: JsonSchema): string[] =>
  (schema["x-accept"] as string[] | undefined) ?? DATA;

/** A data file may have any name except that of a model. */
export function isFor(schema: JsonSchema, name: string): boolean {
  const ends = (suffix: string) => name.toLowerCase().endsWith(suffix);
  const special = schema["x-accept"] as string[] | undefined;
  return special ? special.some(ends) : !MODELS.some(ends);
}
