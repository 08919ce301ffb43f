import { useEffect, useMemo, useRef, useState } from "react";
import { get } from "../../shared/api";
import { instant } from "../../shared/format";
import { useName } from "../../shared/live";
import { useTimeRange, within, type Span } from "../../shared/time-range";
import type { PeekRecord } from "../../shared/types";
import { Chart } from "../../shared/ui/chart";
import { Problem, Skeleton } from "../../shared/ui/parts";
import { RangeBar } from "../../shared/ui/range";
import { Nothing, RecordTable, Stale, streamPath, type Peeked } from "./records";

const POINTS_MAX = 2000;
const EVERY_MS = 1000;
const SERIES_MAX = 7;
const HEIGHT = 300;

interface Props {
  pipeline: string;
  element: string;
  /** the element whose output this one shows */
  source: string | null;
  type: string;
  params: Record<string, unknown>;
  /** of its chart, px */
  height?: number;
}

/** Records of a stream, gathered while they are watched. */
function useStream(pipeline: string, source: string | null) {
  const [records, setRecords] = useState<PeekRecord[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const seen = useRef(new Map<string, PeekRecord>());
  useEffect(() => {
    if (!source) return;
    let over = false;
    let timer = 0;
    const ask = async () => {
      try {
        const answer = await get<Peeked>(streamPath(pipeline, source, "peek", 200));
        for (const record of answer.records) seen.current.set(`${record.partition}/${record.offset}`, record);
        while (seen.current.size > POINTS_MAX)
          seen.current.delete(seen.current.keys().next().value as string);
        if (!over) {
          setRecords([...seen.current.values()].sort((a, b) => (instant(a.at) ?? 0) - (instant(b.at) ?? 0)));
          setError(null);
        }
      } catch (problem) {
        if (!over) setError(problem);
      }
      // the next question only after the answer: a slow server is not asked twice
      if (!over)
        timer = window.setTimeout(() => void ask(), document.visibilityState === "visible" ? EVERY_MS : 5000);
    };
    void ask();
    return () => {
      over = true;
      window.clearTimeout(timer);
    };
  }, [pipeline, source]);
  return { records, error };
}

/** What a live-chart or live-table element shows. */
export function View({ pipeline, element, source, type, params, height = HEIGHT }: Props) {
  const { records, error } = useStream(pipeline, source);
  const name = useName(pipeline, source ?? "");
  if (!source) return <Nothing text="Nothing is connected to it." />;
  if (error && !records) return <Problem error={error} />;
  if (!records) return <Skeleton lines={3} height={60} />;
  if (records.length === 0) return <Nothing text={`No record of ${name} yet.`} />;
  return (
    <>
      <Stale error={error} />
      {type.includes("table") ? (
        <RecordTable
          records={records.slice(-(Number(params.rows) || 50))}
          columns={Array.isArray(params.columns) ? params.columns.map(String) : undefined}
        />
      ) : (
        <StreamChart records={records} params={params} of={`${pipeline} ${element}`} height={height} />
      )}
    </>
  );
}

const asList = (value: unknown): string[] =>
  Array.isArray(value) ? value.map(String) : typeof value === "string" && value ? [value] : [];

/** The columns to draw: those that the parameters name, else all numbers. */
function chartColumns(records: PeekRecord[], params: Record<string, unknown>): string[] {
  const first = records.find((record) => record.value && typeof record.value === "object")?.value as
    Record<string, unknown> | undefined;
  const known = asList(params.columns).filter((name) => first && name in first);
  if (known.length > 0) return known;
  return Object.entries(first ?? {}).flatMap(([name, value]) => (typeof value === "number" ? [name] : []));
}

type Row = Record<string, unknown> | null;

/** The part of the stream that is shown: what is held, else the newest `window_s` seconds of its own time. */
function shownOf(records: PeekRecord[], window_s: number, held: Span | null): PeekRecord[] {
  if (held)
    return within(
      records.map((record) => ({ ...record, t: instant(record.at) ?? 0 })),
      held,
    );
  const newest = instant(records.at(-1)?.at) ?? 0;
  return records.filter((record) => (instant(record.at) ?? 0) >= newest - window_s * 1000);
}

interface ChartProps {
  records: PeekRecord[];
  params: Record<string, unknown>;
  of: string;
  height: number;
}

function StreamChart({ records, params, of, height }: ChartProps) {
  const held = useTimeRange((state) => state.held);
  const chart = useMemo(() => {
    const shown = shownOf(records, Number(params.window_s) || 300, held);
    const columns = chartColumns(shown, params);
    const by = asList(params.by)[0];
    const keyOf = (record: PeekRecord) => String((record.value as Row)?.[by ?? ""] ?? record.key ?? "");
    const keys = by ? [...new Set(shown.map(keyOf))].slice(0, SERIES_MAX) : [null];
    const value = (record: PeekRecord, column: string) => {
      const number = Number((record.value as Row)?.[column] ?? NaN);
      return Number.isNaN(number) ? null : number;
    };
    const lines = keys.flatMap((key) =>
      columns.map((column) => ({
        name: key === null ? column : columns.length > 1 ? `${key} ${column}` : key,
        values: shown.map((record) => (key === null || keyOf(record) === key ? value(record, column) : null)),
      })),
    );
    return {
      title: columns.length === 1 ? (columns[0] ?? "") : "",
      unit: "",
      times: shown.map((record) => record.at ?? 0),
      lines: lines.slice(0, SERIES_MAX),
      kind: params.kind as "line" | "bar" | "points" | undefined,
      limit: typeof params.limit === "number" ? params.limit : undefined,
      height,
      zero: false,
      gaps: true,
    };
  }, [records, params, held, height]);
  return (
    <div className="stack stack--tight">
      <RangeBar follows={false} />
      <Chart {...chart} of={of} />
    </div>
  );
}
