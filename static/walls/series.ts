/** What a chart tile draws of the rows that were gathered for it. Pure. */
import type { Gathered } from "../shared/curve";
import { instant } from "../shared/format";
import type { Mark } from "../shared/marks";
import type { Annotation, ChartTile, Limits, PeekRecord, Series } from "../shared/types";
import type { ChartData } from "../shared/ui/chart-plot";

export const DAY_MS = 86_400_000;
const COLOURS = 7;
/** As many curves can be told apart: seven colours, each as a line and as dots. */
const CURVES_MAX = 14;

/** Ranges that a chart tile offers: seconds and words. */
export const RANGES: readonly [number, string][] = [
  [300, "5 min"],
  [3600, "1 hour"],
  [21_600, "6 hours"],
  [86_400, "1 day"],
  [604_800, "7 days"],
  [2_592_000, "30 days"],
];
export const RANGE_S = 3600;
/** Ranges of a tile of load, whose history is an hour long. */
export const LOAD_RANGES = RANGES.filter(([seconds]) => seconds <= 3600);
export const LOAD_S = 300;

/** How often a curve asks for what is new: as often as its picture can change, ms. */
export const everyOf = (range_s: number): number => Math.min(60_000, Math.max(2000, (range_s * 1000) / 400));

interface Point {
  t: number;
  value: number;
}

interface Curve {
  name: string;
  axis: "left" | "right";
  dash: boolean;
  colour: number;
  points: Point[];
}

const fieldOf = (record: PeekRecord, column: string): unknown =>
  record.value && typeof record.value === "object"
    ? (record.value as Record<string, unknown>)[column]
    : undefined;

function pointsOf(records: readonly PeekRecord[], column: string, shift_ms: number): Point[] {
  return records.flatMap((record) => {
    const [t, value] = [instant(record.at), fieldOf(record, column)];
    const number = value === null || value === undefined || typeof value === "boolean" ? NaN : Number(value);
    return t === null || Number.isNaN(number) ? [] : [{ t: t + shift_ms, value: number }];
  });
}

/** The name of a curve: its column, with its element where others have the same column. */
export function seriesName(
  series: Series,
  all: readonly Series[],
  titles: ReadonlyMap<string, string>,
): string {
  const others = all.filter((each) => each !== series && each.column === series.column);
  const element = titles.get(`${series.pipeline}/${series.element}`) ?? series.element;
  const name = others.length > 0 ? `${element} ${series.column}` : series.column;
  return series.key ? `${name} ${series.key}` : name;
}

const naturally = new Intl.Collator("en", { numeric: true }).compare;

/** The curves of one series: one, or one for each value of its `by`. `name`: null where the value says enough. */
function curvesOf(
  series: Series,
  name: string | null,
  gathered: Gathered,
  shift_ms: number,
): Omit<Curve, "colour">[] {
  const { by, axis = "left", column } = series;
  const dash = shift_ms > 0;
  const after = dash ? ", the day before" : "";
  if (!by)
    return [
      { name: (name ?? column) + after, axis, dash, points: pointsOf(gathered.records, column, shift_ms) },
    ];
  const groups = new Map<string, PeekRecord[]>();
  for (const record of gathered.records) {
    const key = String(fieldOf(record, by) ?? "none");
    const group = groups.get(key);
    if (group) group.push(record);
    else groups.set(key, [record]);
  }
  return [...groups.keys()].sort(naturally).map((key) => ({
    name: (name === null ? key : `${key} ${name}`) + after,
    axis,
    dash,
    points: pointsOf(groups.get(key) ?? [], column, shift_ms),
  }));
}

export const noteMarks = (annotations: readonly Annotation[] = []): Mark[] =>
  annotations.flatMap(({ at, text }) => {
    const t = instant(at);
    return t === null ? [] : [{ t, kind: "note" as const, text }];
  });

export interface WallChart extends ChartData {
  /** names of curves that are too many to be drawn */
  omitted: string[];
}

/**
 * `gathered`, `before`: by the places of the series; of today, and of the day before as far as it is asked for.
 * `limits`: those of the alarm that the tile names, as it runs.
 */
export function wallChart(
  tile: ChartTile,
  gathered: readonly (Gathered | undefined)[],
  before: readonly (Gathered | undefined)[],
  titles: ReadonlyMap<string, string>,
  limits: Limits | null = null,
): WallChart {
  let colour = 0;
  const curves: Curve[] = tile.series.flatMap((series, index) => {
    // of one column, its values are the names: the tile's title says the column
    const name = tile.series.length === 1 && series.by ? null : seriesName(series, tile.series, titles);
    const today = gathered[index] ? curvesOf(series, name, gathered[index], 0) : [];
    const first = colour;
    colour += today.length;
    const coloured = today.map((curve, place) => ({ ...curve, colour: first + place }));
    const yesterday = before[index]?.records.length ? curvesOf(series, name, before[index], DAY_MS) : [];
    // the day before has the colour of today
    const dashed = yesterday.map((curve) => {
      const same = coloured.find((each) => `${each.name}, the day before` === curve.name);
      return { ...curve, colour: same?.colour ?? first };
    });
    return [...coloured, ...dashed];
  });
  const drawn = curves.slice(0, CURVES_MAX);
  const times = [...new Set(drawn.flatMap(({ points }) => points.map(({ t }) => t)))].sort((a, b) => a - b);
  const place = new Map(times.map((t, index) => [t, index]));
  const lines = drawn.map(({ name, axis, dash, colour: index, points }) => {
    const values: (number | null)[] = new Array<number | null>(times.length).fill(null);
    for (const { t, value } of points) values[place.get(t) ?? 0] = value;
    return { name, axis, dash: dash || index >= COLOURS, series: (index % COLOURS) + 1, values };
  });
  const { low, high } = limits ?? tile;
  return {
    title: "",
    unit: "",
    times,
    lines,
    marks: noteMarks(tile.annotations),
    ...(low == null && high == null ? {} : { band: { low: low ?? undefined, high: high ?? undefined } }),
    zero: false,
    rows: true,
    omitted: curves.slice(CURVES_MAX).map(({ name }) => name),
  };
}
