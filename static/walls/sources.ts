/** What a tile can show: pipelines, the streams of their elements, and the columns of those. */
import { get, post } from "../shared/api";
import { displayName, elementsOf, limitOf } from "../shared/document";
import { columnsOf, isNumber } from "../shared/rows/cells";
import type {
  Operator,
  Peeked,
  Pipeline,
  PipelineVersion,
  SchemaField,
  StreamSchema,
  Validation,
} from "../shared/types";

/** An output of an element. */
export interface Stream {
  element: string;
  /** the port; empty where there is one */
  output: string;
  title: string;
  /** null: nobody has said them, so they are read from its rows */
  fields: SchemaField[] | null;
  /** of an alarm: its limit */
  limit: number | null;
}

const path = (pipeline: string): string => `/pipelines/${encodeURIComponent(pipeline)}`;

/** The streams of what runs, else of the draft. */
export async function streamsOf(pipeline: string, signal: AbortSignal): Promise<Stream[]> {
  const [found, operators] = await Promise.all([
    get<Pipeline>(path(pipeline), signal),
    get<Operator[]>("/operators", signal),
  ]);
  const number = found.deployed_version;
  const runs =
    number === null ? null : await get<PipelineVersion>(`${path(pipeline)}/versions/${number}`, signal);
  const document = runs?.document ?? found.document;
  const byType = new Map(operators.map((operator) => [operator.type, operator]));
  // without the names of its columns an element can still be chosen
  const { schemas } = await post<Validation>(`${path(pipeline)}/validate`, { document }).catch(() => ({
    schemas: {} as Record<string, StreamSchema>,
  }));
  return elementsOf(document).flatMap((element) => {
    const operator = byType.get(element.type);
    const outputs = operator?.outputs ?? [];
    return outputs.map(({ name }) => ({
      element: element.id,
      output: outputs.length > 1 ? name : "",
      title: displayName(element, operator) + (outputs.length > 1 ? `, ${name}` : ""),
      fields: schemas[`${element.id}.${name}`]?.fields ?? null,
      limit: limitOf(element)?.value ?? null,
    }));
  });
}

const ROWS = 20;

/** The columns of a stream: those that its schema says, else those of its newest rows. */
export async function fieldsOf(
  pipeline: string,
  stream: Stream,
  signal: AbortSignal,
): Promise<SchemaField[]> {
  if (stream.fields) return stream.fields;
  const reference = stream.output ? `${stream.element}.${stream.output}` : stream.element;
  const { records } = await get<Peeked>(
    `${path(pipeline)}/streams/${encodeURIComponent(reference)}/peek?limit=${ROWS}`,
    signal,
  );
  if (records.length === 0) return [];
  return columnsOf(records).map((column) => {
    const values = records.map(({ value }) => (value as Record<string, unknown> | null)?.[column.name]);
    return { name: column.name, type: isNumber(column, values) ? "number" : "string" };
  });
}

export const isDrawn = ({ type }: SchemaField): boolean => type === "number" || type === "integer";
