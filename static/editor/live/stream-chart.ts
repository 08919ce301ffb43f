/** What a live-chart element draws from the records of its stream. Pure. */
import { flagsOf } from "../../shared/flags";
import { instant } from "../../shared/format";
import { within, type Span } from "../../shared/time-range";
import type { PeekRecord, SchemaField } from "../../shared/types";
import type { ChartData } from "../../shared/ui/chart-plot";

type Params = Record<string, unknown>;
type Row = Record<string, unknown> | null;

const SERIES_MAX = 7;

export const asList = (value: unknown): string[] =>
  Array.isArray(value) ? value.map(String) : typeof value === "string" && value ? [value] : [];

const rowOf = (record: PeekRecord): Row =>
  record.value && typeof record.value === "object" ? (record.value as Row) : null;

/** The columns to draw: those that the parameters name, else all numbers. */
function chartColumns(records: readonly PeekRecord[], params: Params): string[] {
  const first = records.map(rowOf).find((row) => row !== null);
  const known = asList(params.columns).filter((name) => first && name in first);
  if (known.length > 0) return known;
  return Object.entries(first ?? {}).flatMap(([name, value]) => (typeof value === "number" ? [name] : []));
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

/** `records`: oldest first; `fields`: of the stream, as far as they are known. */
export function streamChart(
  records: PeekRecord[],
  params: Params,
  fields: readonly SchemaField[] = [],
  held: Span | null = null,
): ChartData {
  const shown = shownOf(records, Number(params.window_s) || 300, held);
  const columns = chartColumns(shown, params);
  const by = asList(params.by)[0];
  const keyOf = (record: PeekRecord) => String(rowOf(record)?.[by ?? ""] ?? record.key ?? "");
  const keys = by ? [...new Set(shown.map(keyOf))].slice(0, SERIES_MAX) : [null];
  const unitOf = (column: string) => fields.find((field) => field.name === column)?.unit ?? "";
  const value = (record: PeekRecord, column: string) => {
    const number = Number(rowOf(record)?.[column] ?? NaN);
    return Number.isNaN(number) ? null : number;
  };
  const alone = columns.length === 1 ? (columns[0] ?? "") : "";
  const lines = keys.flatMap((key) =>
    columns.map((column) => ({
      name: key === null ? column : alone ? key : `${key} ${column}`,
      // of one column it stands beside the title
      unit: alone ? undefined : unitOf(column) || undefined,
      values: shown.map((record) => (key === null || keyOf(record) === key ? value(record, column) : null)),
    })),
  );
  return {
    title: alone,
    unit: alone ? unitOf(alone) : "",
    times: shown.map((record) => record.at ?? 0),
    lines: lines.slice(0, SERIES_MAX),
    flags: flagsOf(
      shown.map((record) => ({
        t: instant(record.at) ?? 0,
        key: by ? keyOf(record) : "",
        value: rowOf(record),
      })),
      asList(params.marks),
    ),
    kind: params.kind as ChartData["kind"],
    limit: typeof params.limit === "number" ? params.limit : undefined,
    zero: false,
    gaps: true,
  };
}
