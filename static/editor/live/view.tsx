import { useMemo, type ReactNode } from "react";
import { get } from "../../shared/api";
import { useName } from "../../shared/live";
import { useTimeRange } from "../../shared/time-range";
import type { PeekRecord } from "../../shared/types";
import { Chart } from "../../shared/ui/chart";
import type { Line } from "../../shared/ui/chart-plot";
import { Problem, Skeleton, useLoaded } from "../../shared/ui/parts";
import { RangeBar } from "../../shared/ui/range";
import { useEditor } from "../store";
import { Nothing, peekPath, RecordTable, Stale, type Peeked } from "./records";
import { columnQuery, toldRows, useCurve, type Gathered } from "../../shared/curve";
import { AddToWall } from "./add-to-wall";
import { asList, rowsOfKey, streamChart, WINDOW_S } from "./stream-chart";
import { useTrace } from "../../shared/rows/trace";
import { placeOf, rowAt } from "../../shared/rows/trace-words";
import { chartTile, tableTile } from "./wall-tile";

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

/** What a live-chart or live-table element shows. */
export function View(props: Props) {
  if (!props.source) return <Nothing text="Nothing is connected to this view." />;
  return props.type.includes("table") ? (
    <TableView {...props} source={props.source} />
  ) : (
    <ChartView {...props} source={props.source} />
  );
}

const TABLE_EVERY_MS = 1000;
const TABLE_ROWS = 50;

function TableView({ pipeline, source, params }: Props & { source: string }) {
  const rows = Math.min(500, Number(params.rows) || TABLE_ROWS);
  const { data, error } = useLoaded(
    `table ${pipeline} ${source} ${rows}`,
    (signal) => get<Peeked>(peekPath(pipeline, source, rows), signal),
    TABLE_EVERY_MS,
  );
  const columns = Array.isArray(params.columns) ? params.columns.map(String) : undefined;
  return (
    <Shown pipeline={pipeline} source={source} records={data?.records} error={error}>
      {(records) => (
        <div className="stack stack--tight">
          <span>
            <AddToWall pipeline={pipeline} tile={tableTile(pipeline, source, columns, rows, records)} />
          </span>
          <RecordTable records={records} columns={columns} pipeline={pipeline} stream={source} />
        </div>
      )}
    </Shown>
  );
}

function ChartView({ pipeline, element, source, params, height = HEIGHT }: Props & { source: string }) {
  const held = useTimeRange((state) => state.held);
  const { gathered, error } = useCurve({
    path: curvePath(pipeline, source),
    query: columnQuery(asList(params.columns), asList(params.by)[0] ?? null, asList(params.marks)),
    window_ms: Math.ceil(1000 * (Number(params.window_s) || WINDOW_S)),
    held,
  });
  return (
    <Shown
      pipeline={pipeline}
      source={source}
      records={gathered?.records}
      error={error}
      bar={held ? <RangeBar follows={false} /> : undefined}
    >
      {() =>
        gathered && (
          <StreamChart
            gathered={gathered}
            pipeline={pipeline}
            source={source}
            params={params}
            of={`${pipeline} ${element}`}
            height={height}
          />
        )
      }
    </Shown>
  );
}

const curvePath = (pipeline: string, source: string): string =>
  `/pipelines/${encodeURIComponent(pipeline)}/streams/${encodeURIComponent(source)}/curve`;

interface ShownProps {
  pipeline: string;
  source: string;
  records: PeekRecord[] | undefined;
  error: unknown;
  /** what is there even without records */
  bar?: ReactNode;
  children: (records: PeekRecord[]) => ReactNode;
}

function Shown({ pipeline, source, records, error, bar, children }: ShownProps) {
  const name = useName(pipeline, source);
  if (error && !records) return <Problem error={error} />;
  if (!records) return <Skeleton lines={3} height={60} />;
  if (records.length === 0)
    return (
      <>
        {bar}
        <Nothing
          text={bar ? `${name} wrote no record in this time.` : `${name} has not written a record yet.`}
        />
      </>
    );
  return (
    <>
      <Stale error={error} />
      {children(records)}
    </>
  );
}

interface ChartProps {
  gathered: Gathered;
  pipeline: string;
  source: string;
  params: Record<string, unknown>;
  of: string;
  height: number;
}

function StreamChart({ gathered, pipeline, source, params, of, height }: ChartProps) {
  const held = useTimeRange((state) => state.held);
  const fields = useEditor((state) => state.schemas[`${source}.out`]?.fields);
  const chart = useMemo(
    () => ({ ...streamChart(gathered.records, params, fields, held), height }),
    [gathered, params, fields, held, height],
  );
  const { trace, dialog } = useTrace(pipeline);
  const pick = (time: number, line: Line | undefined) => {
    const row = rowAt(rowsOfKey(gathered.records, params, line?.key), time, asList(params.marks));
    if (row) trace(placeOf(source, row), line?.key ?? undefined);
  };
  return (
    <div className="stack stack--tight">
      <div className="row row--between row--wrap">
        <RangeBar follows={false} />
        <AddToWall pipeline={pipeline} tile={chartTile(pipeline, source, params, gathered.records)} />
      </div>
      <Chart {...chart} of={of} note={toldRows(gathered, chart.omitted)} onPick={pick} />
      <p className="muted small">Click a point or a mark to see the rows that it was made from.</p>
      {dialog}
    </div>
  );
}
