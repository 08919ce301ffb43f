/** What a live-chart element draws from the records of its stream. Pure. */
import { flagsOf } from "../../shared/flags";
import { instant } from "../../shared/format";
import { within, type Span } from "../../shared/time-range";
import type { PeekRecord, SchemaField } from "../../shared/types";
import type { ChartData } from "../../shared/ui/chart-plot";

type Params = Record<string, unknown>;
type Row = Record<string, unknown> | null;

export const WINDOW_S = 300;
/** As many curves can be told apart: seven colours, each as a line and as dots. */
const CURVES_MAX = 14;
const COLOURS = 7;
/** A whole number that JSON cannot give to a browser comes as a text. */
const WHOLE = /^-?\d{16,}$/;

export const asList = (value: unknown): string[] =>
  Array.isArray(value) ? value.map(String) : typeof value === "string" && value ? [value] : [];

const rowOf = (record: PeekRecord): Row =>
  record.value && typeof record.value === "object" ? (record.value as Row) : null;

/** Which curve a row belongs to, if there is one for each value of the column `by`. */
const keyOf = (record: PeekRecord, by: string): string => String(rowOf(record)?.[by] ?? record.key ?? "");

/** The rows of a curve; all rows if the chart has one curve for all of them. */
export function rowsOfKey(
  records: readonly PeekRecord[],
  params: Params,
  key: string | null | undefined,
): readonly PeekRecord[] {
  const [by] = asList(params.by);
  return by === undefined || key == null ? records : records.filter((record) => keyOf(record, by) === key);
}

const naturally = new Intl.Collator("en", { numeric: true }).compare;

/** The columns to draw: those that the parameters name, else all numbers. */
export function chartColumns(records: readonly PeekRecord[], params: Params): string[] {
  const first = records.map(rowOf).find((row) => row !== null);
  const known = asList(params.columns).filter((name) => first && name in first);
  if (known.length > 0) return known;
  const isNumber = (value: unknown) => typeof value === "number" || WHOLE.test(String(value));
  return Object.entries(first ?? {}).flatMap(([name, value]) => (isNumber(value) ? [name] : []));
}

/**
 * The part of the stream that is shown: the held range, else the newest `window_s` seconds of its own
 * time.
 */
function shownOf(records: PeekRecord[], window_s: number, held: Span | null): PeekRecord[] {
  if (held)
    return within(
      records.map((record) => ({ ...record, t: instant(record.at) ?? 0 })),
      held,
    );
  const newest = instant(records.at(-1)?.at) ?? 0;
  return records.filter((record) => (instant(record.at) ?? 0) >= newest - window_s * 1000);
}

export interface StreamChart extends ChartData {
  /** names of the curves that are too many to be drawn */
  omitted: string[];
}

/** `records`: oldest first; `fields`: of the stream, as far as they are known. */
export function streamChart(
  records: PeekRecord[],
  params: Params,
  fields: readonly SchemaField[] = [],
  held: Span | null = null,
): StreamChart {
  const shown = shownOf(records, Number(params.window_s) || WINDOW_S, held);
  const columns = chartColumns(shown, params);
  const by = asList(params.by)[0];
  const keys = by ? [...new Set(shown.map((record) => keyOf(record, by)))].sort(naturally) : [null];
  const unitOf = (column: string) => fields.find((field) => field.name === column)?.unit ?? "";
  const value = (record: PeekRecord, column: string) => {
    const number = Number(rowOf(record)?.[column] ?? NaN);
    return Number.isNaN(number) ? null : number;
  };
  const alone = columns.length === 1 ? (columns[0] ?? "") : "";
  const named = keys.flatMap((key) =>
    columns.map((column) => ({
      key,
      column,
      name: key === null ? column : alone ? key : `${key} ${column}`,
    })),
  );
  const lines = named.slice(0, CURVES_MAX).map(({ key, column, name }, index) => {
    const of = (record: PeekRecord) => key === null || !by || keyOf(record, by) === key;
    const texts = shown.map((record) => (of(record) ? rowOf(record)?.[column] : null));
    return {
      name,
      key,
      // of one column it stands beside the title
      unit: alone ? undefined : unitOf(column) || undefined,
      series: (index % COLOURS) + 1,
      dash: index >= COLOURS,
      values: shown.map((record) => (of(record) ? value(record, column) : null)),
      texts: texts.some((text) => typeof text === "string")
        ? texts.map((text) => (text == null ? null : String(text)))
        : undefined,
    };
  });
  return {
    title: alone,
    unit: alone ? unitOf(alone) : "",
    times: shown.map((record) => record.at ?? 0),
    lines,
    omitted: named.slice(CURVES_MAX).map(({ name }) => name),
    flags: flagsOf(
      shown.map((record) => ({
        t: instant(record.at) ?? 0,
        key: by ? keyOf(record, by) : "",
        value: rowOf(record),
      })),
      asList(params.marks),
    ),
    kind: params.kind as ChartData["kind"],
    limit: typeof params.limit === "number" ? params.limit : undefined,
    zero: false,
    rows: true,
  };
}
