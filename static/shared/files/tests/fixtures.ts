import type { ColumnReading, Detection, FieldType, FileDetail, Question, Reading } from "../types";

export const column = (source: number, name: string, type: FieldType = "number"): ColumnReading => ({
  source,
  name,
  type,
  unit: null,
  decimal: null,
  thousands: null,
  missing: null,
  beside: "",
  format: null,
});

/** As C3: a row of units made all columns text. */
export const READING: Reading = {
  kind: "text",
  compression: "",
  member: null,
  sheet: null,
  records: null,
  encoding: "utf-8",
  delimiter: ",",
  quote: '"',
  cuts: [],
  escape: "",
  commas: "",
  comment: "",
  header_line: 1,
  units_line: null,
  first_line: 2,
  last_line: null,
  decimal: ".",
  thousands: "",
  missing: [""],
  columns: [column(0, "time", "timestamp"), column(1, "flow", "string"), column(2, "pressure", "string")],
  time: {
    columns: [0],
    format: "iso",
    zone: "UTC",
    marks: "begin",
    newest_first: false,
    jump: "keep",
    jump_s: null,
  },
};

export const QUESTION: Question = {
  id: "thousands",
  text: "Is 1.008 in flow one thousand and eight, or about one?",
  line: 3,
  column: "flow",
  choices: [
    {
      title: "1008",
      example: "1.008 is 1008",
      changes: { "columns.1.thousands": ".", "columns.1.decimal": "," },
    },
    { title: "1.008", example: "1.008 is 1.008", changes: { "columns.1.thousands": "" } },
  ],
};

export const FOUND: Detection = { reading: READING, notes: [], questions: [] };
export const ASKS: Detection = { ...FOUND, questions: [QUESTION] };

export const FILE: FileDetail = {
  id: "a1",
  reference: "upload:a1",
  name: "flow.csv",
  size: 1000,
  sha256: "0",
  kind: "table",
  state: "asks",
  progress: null,
  error: null,
  columns: [],
  rows: null,
  has_time: null,
  table_bytes: 0,
  dead_rows: null,
  unread_cells: null,
  uses: [],
  created_at: "2026-11-28T03:00:00Z",
  created_by: "ada",
  detection: FOUND,
  reading: null,
  report: null,
};
