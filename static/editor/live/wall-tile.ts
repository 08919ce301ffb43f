/** A view of a pipeline as a tile of a wall. Pure. */
import { parseReference } from "../../shared/document";
import { columnsOf } from "../../shared/rows/cells";
import type { PeekRecord, Tile } from "../../shared/types";
import { asList, chartColumns, WINDOW_S } from "./stream-chart";

type Params = Record<string, unknown>;

const SERIES_MAX = 8;
const COLUMNS_MAX = 12;
const ROWS_MAX = 50;
const RANGE_S_MIN = 60;
/** Its id, and its place and size on the wall, are found there. */
const NOWHERE = { id: "", title: "", x: 0, y: 0, w: 0, h: 0 };

/** `source`: the stream that is shown, `element` or `element.port`. */
function streamOf(pipeline: string, source: string) {
  const { element, port } = parseReference(source);
  return { pipeline, element, output: port === "out" ? "" : port };
}

export function chartTile(
  pipeline: string,
  source: string,
  params: Params,
  records: readonly PeekRecord[],
): Tile {
  const by = asList(params.by)[0] ?? null;
  return {
    ...NOWHERE,
    kind: "chart",
    series: chartColumns(records, params)
      .slice(0, SERIES_MAX)
      .map((column) => ({ ...streamOf(pipeline, source), column, by })),
    range_s: Math.max(RANGE_S_MIN, Math.ceil(Number(params.window_s) || WINDOW_S)),
    low: null,
    ...(typeof params.limit_of === "string"
      ? { high: null, limit_of: { pipeline, element: params.limit_of } }
      : { high: typeof params.limit === "number" ? params.limit : null }),
  };
}

export function tableTile(
  pipeline: string,
  source: string,
  columns: readonly string[] | undefined,
  rows: number,
  records: readonly PeekRecord[],
): Tile {
  const shown = columns ?? columnsOf(records).map(({ name }) => name);
  return {
    ...NOWHERE,
    kind: "table",
    ...streamOf(pipeline, source),
    columns: shown.slice(0, COLUMNS_MAX),
    rows: Math.min(ROWS_MAX, rows),
  };
}
