/** The parts of a reading in words, and what each can be. Pure. */
import { count, listed, plural } from "../format";
import type {
  FileState,
  FileUse,
  Jump,
  PreviewLine,
  Question,
  Reading,
  Report,
  StoredFile,
  TimeReading,
} from "./types";

export type Options = readonly (readonly [value: string, words: string])[];

export const DELIMITERS: Options = [
  [",", "comma ,"],
  [";", "semicolon ;"],
  ["\t", "tab"],
  ["|", "bar |"],
  ["whitespace", "spaces"],
  ["places", "fixed places"],
];

export const ESCAPES: Options = [
  ["", 'written twice: ""'],
  ["\\", 'behind a backslash: \\"'],
];

/** What may stand beside the numbers of a column, apart from a unit. */
export const BESIDES: Options = [
  ["", "nothing"],
  ["\u00b1", "signs written in another way: (5), 5-, \u2212 5"],
];

/** "values", "data.rows, an array for each column": where a JSON document has its rows. */
export function arrayWords(path: string): string {
  if (path === "") return "the document itself";
  if (path === "*") return "the document, an array for each column";
  return path.endsWith(".*") ? `${path.slice(0, -2)}, an array for each column` : path;
}

/** "8, 16, 24": places in a line, in characters. */
export const placesText = (cuts: readonly number[]): string => cuts.join(", ");

/** The places that a text names, in their order; what is no number is left out. */
export function placesOf(text: string): number[] {
  const found = text.split(/[^0-9]+/).map(Number);
  return [...new Set(found.filter((place) => place > 0))].sort((a, b) => a - b);
}

export const QUOTES: Options = [
  ['"', 'double quotes "'],
  ["'", "single quotes '"],
  ["", "no quotes"],
];

export const DECIMALS: Options = [
  [".", "a point: 1.5"],
  [",", "a comma: 1,5"],
];

export const THOUSANDS: Options = [
  ["", "nothing: 1000"],
  [".", "a point: 1.000"],
  [",", "a comma: 1,000"],
  [" ", "a space: 1 000"],
  ["'", "an apostrophe: 1'000"],
];

export const COMMENTS: Options = [
  ["", "no lines"],
  ["#", "lines that begin with #"],
  [";", "lines that begin with ;"],
  ["//", "lines that begin with //"],
  ["%", "lines that begin with %"],
];

export const TYPES: Options = [
  ["number", "number"],
  ["integer", "whole number"],
  ["string", "text"],
  ["boolean", "true or false"],
  ["timestamp", "time"],
];

export const TIME_FORMATS: Options = [
  ["iso", "ISO 8601: 2024-05-01 14:00:00"],
  ["%d.%m.%Y %H:%M:%S", "01.05.2024 14:00:00, day first"],
  ["%d.%m.%Y %H:%M", "01.05.2024 14:00, day first"],
  ["%d/%m/%Y %H:%M:%S", "01/05/2024 14:00:00, day first"],
  ["%d/%m/%Y %H:%M", "01/05/2024 14:00, day first"],
  ["%m/%d/%Y %H:%M:%S", "05/01/2024 14:00:00, month first"],
  ["%m/%d/%Y %H:%M", "05/01/2024 14:00, month first"],
  ["%m/%d/%Y %I:%M:%S %p", "05/01/2024 02:00:00 PM, month first"],
  ["%Y/%m/%d %H:%M:%S", "2024/05/01 14:00:00"],
  ["%Y%m%d:%H%M", "20240501:1400"],
  ["epoch_s", "seconds since 1970"],
  ["epoch_ms", "milliseconds since 1970"],
  ["epoch_us", "microseconds since 1970"],
  ["epoch_ns", "nanoseconds since 1970"],
  ["excel_days", "days since 1900, as in Excel"],
  ["excel_days_1904", "days since 1904, as in Excel on a Mac"],
  ["matlab_days", "days since the year 0, as in MATLAB"],
  ["labview_s", "seconds since 1904, as in LabVIEW"],
  ["ntp_s", "seconds since 1900, as in the network time protocol"],
  ["filetime", "tenths of microseconds since 1601, as in Windows"],
  ["dotnet_ticks", "tenths of microseconds since the year 1, as in .NET"],
  ["julian_days", "Julian days"],
  ["modified_julian_days", "modified Julian days, since 1858-11-17"],
];

export const MARKS: readonly (readonly [TimeReading["marks"], string])[] = [
  ["begin", "its interval's start"],
  ["end", "its interval's end"],
];

export const JUMPS: readonly (readonly [TimeReading["jump"], string])[] = [
  ["keep", "keep it as it is"],
  ["skip", "leave those rows out"],
  ["cut", "shorten it"],
];

/** The options with the value among them. */
export const including = (
  options: Options,
  value: string,
  words: (value: string) => string = (each) => each,
): Options => (options.some(([each]) => each === value) ? options : [...options, [value, words(value)]]);

const PARTS: Readonly<Record<string, string>> = {
  "%Y": "YYYY",
  "%y": "YY",
  "%m": "MM",
  "%d": "DD",
  "%b": "month",
  "%H": "hh",
  "%I": "hh",
  "%M": "mm",
  "%S": "ss",
  "%f": "fff",
  "%p": "AM",
  "%z": "+hh:mm",
  "%j": "day of the year",
  "%B": "month",
  "%a": "weekday",
  "%u": "weekday",
  "%G": "YYYY",
  "%V": "week",
  "%q": "quarter",
};

const AROUND: readonly (readonly [RegExp, string])[] = [
  [/^\{above\} /, "date above the table, "],
  [/^\{range\} /, "start of a range, "],
  [/^\{range end\} /, "end of a range, "],
  [/^\{(\d{4}[\d-]*)\} /, "$1, "],
  [/^\{([^{}]+)\} seconds$/, "seconds since $1"],
  [/ \| /g, " or "],
];

/** A pattern of times as people write one: `%d/%m/%Y %H:%M` is DD/MM/YYYY hh:mm. */
export const patternWords = (pattern: string): string =>
  AROUND.reduce((text, [mark, words]) => text.replace(mark, words), pattern).replace(
    /%[A-Za-z]/g,
    (part) => PARTS[part] ?? part,
  );

const wordsOf = (options: Options, value: string): string =>
  options.find(([each]) => each === value)?.[1] ?? value;

/** The guesses in one line: "UTF-8 · comma , · names in line 3 · a point: 1.5 · time in Date and Time". */
export function readingWords(reading: Reading, encodings: Options): string {
  const { kind, header_line, time } = reading;
  const names = time?.columns.map(
    (source) => reading.columns.find((column) => column.source === source)?.name ?? String(source),
  );
  const text = [
    wordsOf(encodings, reading.encoding),
    wordsOf(DELIMITERS, reading.delimiter),
    header_line === null ? "no column names" : `names in line ${count(header_line)}`,
    wordsOf(DECIMALS, reading.decimal),
  ];
  return [...(kind === "text" ? text : [kind]), names ? `time in ${listed(names)}` : "no time"].join(" · ");
}

const KINDS: Record<PreviewLine["kind"], string> = {
  preamble: "before the table",
  comment: "comment",
  header: "names",
  units: "units",
  row: "",
  footer: "after the table",
};

/** What a line is taken for: "names", "units". A row needs no word. */
export const kindWords = (kind: PreviewLine["kind"]): string => KINDS[kind];

const EMPTY = "empty";

/** The texts for "no value" as one line: "empty, -, NaN". */
export const missingText = (texts: readonly string[]): string =>
  texts.map((text) => (text === "" ? EMPTY : text)).join(", ");

export function missingOf(line: string): string[] {
  const texts = line
    .split(",")
    .map((text) => text.trim())
    .filter(Boolean)
    .map((text) => (text.toLowerCase() === EMPTY ? "" : text));
  return [...new Set(texts)];
}

/** A span in the largest unit that fits: "54 years", "3 h", "10 ms". */
export function spanWords(seconds: number): string {
  const s = Math.abs(seconds);
  const whole = (size: number, one: string) => plural(Math.round(s / size), one);
  if (s < 1) return `${Number((s * 1000).toPrecision(3))} ms`;
  if (s < 120) return `${Number(s.toPrecision(3))} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  if (s < 2 * 86_400) return `${Math.round(s / 3600)} h`;
  return s < 2 * 365 * 86_400 ? whole(86_400, "day") : whole(365.25 * 86_400, "year");
}

/** "After line 2, the time jumps by 54 years: from … to …." */
export function jumpWords(jump: Jump): string {
  const way = jump.seconds < 0 ? "goes back by" : "jumps by";
  return `At line ${count(jump.line)}, the time ${way} ${spanWords(jump.seconds)}: from ${utc(jump.before)} to ${utc(jump.after)}.`;
}

const UTC = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
  timeZone: "UTC",
});

/** "1 May 2024, 14:00:00 UTC". */
export function utc(at: string): string {
  const time = Date.parse(at);
  return Number.isNaN(time) ? at : `${UTC.format(time)} UTC`;
}

/** A long jump: the replay would stand still. */
const LONG_S = 3600;

export const isLongJump = (jump: Jump | null, usual_s: number | null): boolean =>
  jump !== null && (jump.seconds < 0 || jump.seconds > Math.max(LONG_S, 20 * (usual_s ?? 0)));

/** What became of the file, in a line or two. */
/** "3 rows and 12 cells could not be read"; null when all could, or nobody knows yet. */
export function unreadWords({
  dead_rows,
  unread_cells,
}: Pick<StoredFile, "dead_rows" | "unread_cells">): string | null {
  const parts = [
    ...(dead_rows ? [plural(dead_rows, "row")] : []),
    ...(unread_cells ? [plural(unread_cells, "cell")] : []),
  ];
  return parts.length > 0 ? `${listed(parts)} could not be read` : null;
}

export function reportWords(report: Report): string[] {
  const cells = report.columns.reduce((sum, column) => sum + column.unreadable, 0);
  const says = [`${rows(report.rows)}, ${plural(report.columns.length, "column")}.`];
  if (report.begins && report.ends)
    says.push(
      `From ${utc(report.begins)} to ${utc(report.ends)}${report.usual_interval_s ? `, mostly ${spanWords(report.usual_interval_s)} apart` : ""}.`,
    );
  const plays_s =
    report.begins && report.ends ? (Date.parse(report.ends) - Date.parse(report.begins)) / 1000 : 0;
  if (plays_s > 0) says.push(`At its recorded pace it plays for ${spanWords(plays_s)}.`);
  if (cells > 0)
    says.push(
      `${cells === 1 ? "One cell" : `${count(cells)} cells`} could not be read and ${cells === 1 ? "has" : "have"} no value.`,
    );
  if (report.dead > 0)
    says.push(
      report.dead === 1
        ? "1 row has no time that can be read, or is cut off. It goes to the dead letters, and the columns do not count it."
        : `${rows(report.dead)} have no time that can be read, or are cut off. They go to the dead letters, and the columns do not count them.`,
    );
  if (report.with_decimals.length > 0)
    says.push(`Decimals came late, so these columns are numbers: ${report.with_decimals.join(", ")}.`);
  if (report.skipped > 0)
    says.push(
      `${rows(report.skipped)} ${report.skipped === 1 ? "was left out, since its" : "were left out, since their"} time jumped.`,
    );
  if (report.footer > 0)
    says.push(`${rows(report.footer)} after the table ${report.footer === 1 ? "was" : "were"} left out.`);
  return says;
}

/** "1 row", "9,000 rows". */
export const rows = (n: number): string => `${count(n)} ${n === 1 ? "row" : "rows"}`;

const STATES: Record<FileState, string> = {
  looking: "finding its columns",
  asks: "waits for an answer",
  importing: "being imported",
  imported: "ready",
  failed: "failed",
  cancelled: "cancelled",
  model: "model",
};

export const stateWords = (state: FileState): string => STATES[state];

const TONES: Record<FileState, string> = {
  looking: "moving",
  asks: "lagging",
  importing: "moving",
  imported: "running",
  failed: "failed",
  cancelled: "stopped",
  model: "running",
};

export const stateTone = (state: FileState): string => TONES[state];

export const isBusy = ({ state }: StoredFile): boolean => state === "looking" || state === "importing";

/** Who uses a file: "machine-power (deployed), tests (version 3)". */
export const usersOf = (uses: readonly FileUse[]): string =>
  uses
    .map(({ pipeline, where, version }) =>
      where === "deployment"
        ? `${pipeline} (deployed)`
        : where === "draft"
          ? `${pipeline} (draft)`
          : where === "template"
            ? `${pipeline} (template)`
            : `${pipeline} (version ${version})`,
    )
    .join(", ");

/** How long the rest takes at the pace so far; null while that is not known. */
export function leftMs(done: number, total: number, taken_ms: number): number | null {
  if (done <= 0 || total <= done || taken_ms < 1000) return null;
  return (taken_ms * (total - done)) / done;
}

/** Where a question's cell is, as far as its text does not say so: "Line 12, column power". */
export const placeOf = ({ text, line, column }: Question): string =>
  [
    line !== null && !text.includes(`line ${count(line)}`) && `Line ${count(line)}`,
    column !== null && !text.includes(column) && `column ${column}`,
  ]
    .filter(Boolean)
    .join(", ")
    .replace(/^c/, "C");

/** A time in UTC as it stands in a table: "2024-05-01 14:00:00". */
export const timeText = (time: string | null): string =>
  time === null ? "" : time.replace("T", " ").replace(/(\+00:00|Z)$/, "");
