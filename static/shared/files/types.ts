/** Types of an imported file, as the REST API sends them. */
import type { SchemaField } from "../types";

export type FieldType = "integer" | "number" | "string" | "boolean" | "timestamp";
export type Source = number | string;

export interface ColumnReading {
  source: Source;
  name: string;
  type: FieldType;
  unit: string | null;
  decimal: "." | "," | null;
  thousands: "" | "." | "," | " " | "'" | null;
  missing: string[] | null;
  format: string | null;
}

export interface TimeReading {
  columns: Source[];
  format: string;
  zone: string;
  marks: "begin" | "end";
  newest_first: boolean;
  jump: "keep" | "skip" | "cut";
  jump_s: number | null;
}

export interface Reading {
  kind: "text" | "json-lines" | "parquet" | "xlsx";
  compression: "" | "gzip" | "zip";
  member: string | null;
  sheet: string | null;
  encoding: string;
  delimiter: string;
  quote: '"' | "'" | "";
  comment: string;
  header_line: number | null;
  units_line: number | null;
  first_line: number;
  decimal: "." | ",";
  thousands: "" | "." | "," | " " | "'";
  missing: string[];
  columns: ColumnReading[];
  time: TimeReading | null;
}

export interface Choice {
  title: string;
  example: string;
  changes: Record<string, unknown>;
}

export interface Question {
  id: string;
  text: string;
  line: number | null;
  column: string | null;
  choices: Choice[];
}

export interface Detection {
  reading: Reading;
  notes: string[];
  questions: Question[];
  members?: string[];
  sheets?: string[];
}

export interface ColumnReport {
  name: string;
  read: number;
  missing: number;
  unreadable: number;
  first_unreadable: [number, string] | null;
}

export interface Jump {
  line: number;
  before: string;
  after: string;
  seconds: number;
}

export interface Report {
  rows: number;
  dead: number;
  first_dead: [number, string] | null;
  columns: ColumnReport[];
  begins: string | null;
  ends: string | null;
  usual_interval_s: number | null;
  largest_jump: Jump | null;
  skipped: number;
  questions: Question[];
}

export interface PreviewLine {
  number: number;
  kind: "preamble" | "comment" | "header" | "units" | "row" | "footer";
  text: string;
  cells: string[];
}

export interface PreviewColumn {
  source: Source;
  name: string;
  type: FieldType;
  unit: string | null;
  unreadable: number;
  missing: number;
  is_time: boolean;
}

export interface PreviewCell {
  column: number;
  text: string;
  why: string;
}

export interface PreviewRow {
  line: number;
  values: unknown[];
  time: string | null;
  unreadable: PreviewCell[];
  reject: string | null;
}

export interface Preview {
  lines: PreviewLine[];
  columns: PreviewColumn[];
  rows: PreviewRow[];
}

export interface Previewed {
  preview: Preview;
  detection: Detection | null;
}

export type FileState = "looking" | "asks" | "importing" | "imported" | "failed" | "cancelled" | "model";

export interface FileUse {
  pipeline: string;
  where: "draft" | "version" | "deployment";
  version: number | null;
}

export interface StoredFile {
  id: string;
  reference: string;
  name: string;
  size: number;
  sha256: string;
  state: FileState;
  progress: { bytes_done: number; bytes_total: number; rows: number } | null;
  error: { what: string; where: string | null; next: string } | null;
  columns: SchemaField[];
  rows: number | null;
  has_time: boolean | null;
  table_bytes: number;
  uses: FileUse[];
  created_at: string;
  created_by: string | null;
}

export interface FileDetail extends StoredFile {
  detection: Detection | null;
  reading: Reading | null;
  report: Report | null;
}
