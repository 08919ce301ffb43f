/** Where a decision about a file starts: as it was found, or as it was imported before. Pure. */
import { NO_CHANGES, type Changes } from "./reading";
import type { Detection, FileDetail, Reading } from "./types";

const EMPTY: Reading = {
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
  header_line: null,
  units_line: null,
  first_line: 1,
  last_line: null,
  decimal: ".",
  thousands: "",
  missing: [""],
  columns: [],
  time: null,
};

/**
 * A file that was imported before starts with that reading, and its columns that were left out are there to
 * be taken again. Its questions are answered.
 */
export function startOf(file: FileDetail): { detection: Detection; changes: Changes } {
  const found = file.detection ?? { reading: EMPTY, notes: [], questions: [] };
  if (!file.reading || file.state === "asks") return { detection: found, changes: NO_CHANGES };
  const { reading } = file;
  const bySource = new Map(reading.columns.map((column) => [String(column.source), column]));
  const columns = found.reading.columns.map((column) => bySource.get(String(column.source)) ?? column);
  const more = reading.columns.filter(
    (column) => !columns.some((each) => String(each.source) === String(column.source)),
  );
  const out = columns.filter((column) => !bySource.has(String(column.source)));
  return {
    detection: { ...found, reading: { ...reading, columns: [...columns, ...more] }, questions: [] },
    changes: {
      ...NO_CHANGES,
      columns: Object.fromEntries(out.map((column) => [String(column.source), { out: true }])),
    },
  };
}
