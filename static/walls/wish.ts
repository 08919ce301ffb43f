/** A tile as the dialog has it while it is filled in. Pure. */
import type { Series, Tile } from "../shared/types";
import { ofNode, type LoadFigure } from "../shared/load-charts";
import { LOAD_S, RANGE_S } from "./series";

/** A column of a chart, with how it is drawn. */
export interface WishedCurve {
  pipeline: string;
  element: string;
  output: string;
  column: string;
  by: string | null;
  key: string | null;
  axis: "left" | "right";
  compare_yesterday: boolean;
}

export interface Wish {
  /** of the tile that is changed; null makes a new one */
  of: Tile | null;
  kind: Tile["kind"];
  title: string;
  /** where columns are chosen from now */
  pipeline: string;
  element: string;
  output: string;
  /** of a figure (one) or a table */
  columns: string[];
  /** of a chart: they may be of several streams */
  curves: WishedCurve[];
  range_s: number;
  low: string;
  high: string;
  /** the alarm whose limit it is, in place of numbers */
  limit_of: { pipeline: string; element: string } | null;
  unit: string;
  decimals: string;
  rows: string;
  text: string;
  figure: LoadFigure;
  node: string;
}

export const NO_WISH: Wish = {
  of: null,
  kind: "chart",
  title: "",
  pipeline: "",
  element: "",
  output: "",
  columns: [],
  curves: [],
  range_s: RANGE_S,
  low: "",
  high: "",
  limit_of: null,
  unit: "",
  decimals: "",
  rows: "10",
  text: "",
  figure: "throughput",
  node: "",
};

const SERIES_MAX = 8;
const COLUMNS_MAX = 12;
const ROWS_MAX = 50;

const curveOf = (series: Series): WishedCurve => ({
  pipeline: series.pipeline,
  element: series.element,
  output: series.output ?? "",
  column: series.column,
  by: series.by ?? null,
  key: series.key ?? null,
  axis: series.axis ?? "left",
  compare_yesterday: series.compare_yesterday ?? false,
});

const text = (value: number | null | undefined): string => (value == null ? "" : String(value));

/** The wish that a tile fulfils. */
export function wishOf(tile: Tile): Wish {
  const wish = { ...NO_WISH, of: tile, kind: tile.kind, title: tile.title ?? "" };
  if (tile.kind === "text") return { ...wish, text: tile.text };
  if (tile.kind === "picture") return { ...wish, pipeline: tile.pipeline };
  if (tile.kind === "table") {
    const { pipeline, element, output = "", columns, rows } = tile;
    return { ...wish, pipeline, element, output, columns, rows: String(rows ?? 10) };
  }
  if (tile.kind === "load") {
    const { figure, pipeline = "", element = "", node = "", range_s = LOAD_S } = tile;
    return { ...wish, figure, pipeline, element, node, range_s };
  }
  const limits = { low: text(tile.low), high: text(tile.high), limit_of: tile.limit_of ?? null };
  if (tile.kind === "figure") {
    const { pipeline, element, output = "", column } = tile.series;
    const { unit = "", decimals } = tile;
    return {
      ...wish,
      ...limits,
      pipeline,
      element,
      output,
      columns: [column],
      unit,
      decimals: text(decimals),
    };
  }
  const [first] = tile.series;
  return {
    ...wish,
    ...limits,
    pipeline: first?.pipeline ?? "",
    element: first?.element ?? "",
    output: first?.output ?? "",
    curves: tile.series.map(curveOf),
    range_s: tile.range_s ?? RANGE_S,
  };
}

/** null: nothing was written; NaN: no number. A comma is read as a point. */
export const numberIn = (written: string): number | null =>
  written.trim() === "" ? null : Number(written.trim().replace(",", "."));

/** Why the wish cannot be fulfilled yet; null when it can. */
export function faultOf(wish: Wish): string | null {
  if (wish.kind === "text") return wish.text.trim() ? null : "Write the text.";
  if (wish.kind === "load" && ofNode(wish.figure)) return wish.node ? null : "Choose a node.";
  if (!wish.pipeline) return "Choose a pipeline.";
  if (wish.kind === "load") return wish.element ? null : "Choose an element.";
  if (wish.kind === "picture") return null;
  if (wish.kind === "chart") {
    if (wish.curves.length === 0) return "Choose a column.";
    if (wish.curves.length > SERIES_MAX) return `A chart has at most ${SERIES_MAX} columns.`;
  } else if (wish.columns.length === 0) return "Choose a column.";
  if (wish.columns.length > COLUMNS_MAX) return `A table has at most ${COLUMNS_MAX} columns.`;
  if (wish.kind === "table") {
    const rows = numberIn(wish.rows);
    return rows !== null && Number.isInteger(rows) && rows >= 1 && rows <= ROWS_MAX
      ? null
      : `Rows are a whole number from 1 to ${ROWS_MAX}.`;
  }
  if (wish.limit_of) return null;
  const [low, high] = [numberIn(wish.low), numberIn(wish.high)];
  if (Number.isNaN(low) || Number.isNaN(high)) return "A limit is a number, or empty.";
  if (low !== null && high !== null && low >= high) return "The lower limit is below the upper one.";
  return null;
}

/** The tile of a wish without a fault. A new one has no id, and no size: its place decides. */
export function tileOf(wish: Wish): Tile {
  const { of, kind, title, pipeline, element, output } = wish;
  const place = of ?? { id: "", x: 0, y: 0, w: 0, h: 0 };
  const base = { id: place.id, x: place.x, y: place.y, w: place.w, h: place.h, title: title.trim() };
  const limits = wish.limit_of
    ? { low: null, high: null, limit_of: wish.limit_of }
    : { low: numberIn(wish.low), high: numberIn(wish.high), limit_of: null };
  switch (kind) {
    case "text":
      return { ...base, kind, text: wish.text };
    case "picture":
      return { ...base, kind, pipeline };
    case "load": {
      const subject = ofNode(wish.figure)
        ? { pipeline: "", element: "", node: wish.node }
        : { pipeline, element, node: "" };
      return { ...base, kind, figure: wish.figure, ...subject, range_s: wish.range_s };
    }
    case "table":
      return { ...base, kind, pipeline, element, output, columns: wish.columns, rows: Number(wish.rows) };
    case "figure": {
      const known = of?.kind === "figure" ? of.series : {};
      const series = { ...known, pipeline, element, output, column: wish.columns[0] ?? "" };
      return { ...base, kind, ...limits, series, unit: wish.unit.trim(), decimals: numberIn(wish.decimals) };
    }
    case "chart": {
      const annotations = of?.kind === "chart" ? (of.annotations ?? []) : [];
      return { ...base, kind, ...limits, series: wish.curves, range_s: wish.range_s, annotations };
    }
  }
}
