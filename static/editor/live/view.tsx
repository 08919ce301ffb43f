import { useEffect, useMemo, useRef, useState } from "react";
import { get } from "../../shared/api";
import { instant } from "../../shared/format";
import { useName } from "../../shared/live";
import { useTimeRange } from "../../shared/time-range";
import type { PeekRecord } from "../../shared/types";
import { Chart } from "../../shared/ui/chart";
import { Problem, Skeleton } from "../../shared/ui/parts";
import { RangeBar } from "../../shared/ui/range";
import { useEditor } from "../store";
import { Nothing, RecordTable, Stale, streamPath, type Peeked } from "./records";
import { streamChart } from "./stream-chart";

const POINTS_MAX = 2000;
const EVERY_MS = 1000;
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
  if (!source) return <Nothing text="Nothing is connected to this view." />;
  if (error && !records) return <Problem error={error} />;
  if (!records) return <Skeleton lines={3} height={60} />;
  if (records.length === 0) return <Nothing text={`${name} has not written a record yet.`} />;
  return (
    <>
      <Stale error={error} />
      {type.includes("table") ? (
        <RecordTable
          records={records.slice(-(Number(params.rows) || 50))}
          columns={Array.isArray(params.columns) ? params.columns.map(String) : undefined}
        />
      ) : (
        <StreamChart
          records={records}
          source={source}
          params={params}
          of={`${pipeline} ${element}`}
          height={height}
        />
      )}
    </>
  );
}

interface ChartProps {
  records: PeekRecord[];
  source: string;
  params: Record<string, unknown>;
  of: string;
  height: number;
}

function StreamChart({ records, source, params, of, height }: ChartProps) {
  const held = useTimeRange((state) => state.held);
  const fields = useEditor((state) => state.schemas[`${source}.out`]?.fields);
  const chart = useMemo(
    () => ({ ...streamChart(records, params, fields, held), height }),
    [records, params, fields, held, height],
  );
  return (
    <div className="stack stack--tight">
      <RangeBar follows={false} />
      <Chart {...chart} of={of} />
    </div>
  );
}
