/** What Plotly draws of a chart. */
import type { default as PlotlyModule, Layout, Plot, Trace } from "plotly.js-basic-dist-min";
import type { Flags } from "../flags";
import { alone, withBreaks } from "../curve-gaps";
import { extentOf, tickFormat, valueFormat } from "../digits";
import { instant } from "../format";
import type { Mark, MarkKind } from "../marks";
import { isDark } from "../theme";
import type { Span } from "../time-range";
import { flagTraces, type DrawnFlags } from "./chart-flags";

export type Plotly = typeof PlotlyModule;

let library: Promise<Plotly> | null = null;
export const loadPlotly = (): Promise<Plotly> => (library ??= loadOnce());

async function loadOnce(): Promise<Plotly> {
  // an element with this id and class keeps Plotly from adding inline styles: plotly.css has them
  const mark = document.createElement("template");
  mark.id = "plotly.js-style-global";
  mark.className = "no-inline-styles";
  document.head.append(mark);
  return (await import("plotly.js-basic-dist-min")).default;
}

export interface Line {
  name: string;
  values: (number | null | undefined)[];
  /** where the lines of a chart differ in it */
  unit?: string;
  /** 1 to 7: the place in the chart scale */
  series?: number;
  dash?: boolean;
  /** the side on which its scale stands; left if it is not said */
  axis?: "left" | "right";
  /** the values as they were written, where a number would lose digits */
  texts?: (string | null)[];
  /** of a chart with a curve for each value of a column: the value whose rows these are */
  key?: string | null;
}

export interface ChartData {
  title: string;
  unit: string;
  times: (number | string)[];
  lines: Line[];
  marks?: Mark[];
  flags?: Flags[];
  height?: number;
  /** "ratio": 0 to 1, shown as percent */
  scale?: "ratio" | "bytes" | "plain";
  /** false: the axis need not start at 0 */
  zero?: boolean;
  /** true: its times are those of rows, of which each line has some; a line breaks where its rows are missing */
  rows?: boolean;
  kind?: "line" | "bar" | "points";
  /** how much time the axis spans, up to now; absent: as long as there are points */
  span_ms?: number;
  /** a horizontal line, such as an alert's */
  limit?: number;
  /** what the lines of the left axis should stay between: what lies beyond is shaded */
  band?: { low?: number | undefined; high?: number | undefined };
  /** the size of its words, px; 11 where it is not said */
  text_px?: number;
}

export const HEIGHT = 170;
/** How much time the axis of a chart without a point spans. */
const EMPTY_MS = 300_000;
/** How much of the curves a box at the pointer covers: they are seen through it. */
const COVER = 0.82;
const TEXT = 11;
/** As wide as a time at the axis and the room beside it, by the size of its letters. */
const TIME_LETTERS = 6.5;
const textOf = ({ text_px = TEXT }: Pick<ChartData, "text_px">): number => text_px;

/** How each kind of mark looks: by colour and shape. */
export const MARKS: Record<MarkKind, { word: string; colour: string; symbol: string; glyph: string }> = {
  handover: { word: "handover", colour: "--moving", symbol: "diamond", glyph: "◆" },
  deployment: { word: "deployment", colour: "--standby", symbol: "triangle-down", glyph: "▼" },
  checkpoint: { word: "checkpoint", colour: "--ink-3", symbol: "line-ns-open", glyph: "|" },
  fault: { word: "fault", colour: "--failed", symbol: "square", glyph: "■" },
  note: { word: "note", colour: "--ink-2", symbol: "star", glyph: "★" },
};

const CONFIG = {
  displaylogo: false,
  responsive: false,
  displayModeBar: false,
  scrollZoom: false,
  // its note on zooming out would lie over the page; "Back to now" is always in sight
  showTips: false,
  doubleClick: false,
};

/** The chart without the lines and flags that its legend has hidden; the others keep their colours. */
export interface Drawn extends Omit<ChartData, "flags"> {
  flags: DrawnFlags[];
}

/** `held`: the range of time that stays; null when the chart follows time. */
export function draw(
  place: HTMLElement,
  plotly: Plotly,
  chart: Drawn,
  held: Span | null,
  width: number,
): Promise<Plot> {
  const flags = flagTraces(chart.flags, chart.height ?? HEIGHT, (property) => colour(place, property));
  const data = [...lineTraces(place, chart), ...flags, ...markTraces(place, chart)];
  return plotly.react(place, data, layout(place, chart, held, width), CONFIG);
}

/** Colours that were read before, by theme: each reading makes the browser style the whole page again. */
const colours = new Map<string, string>();

/** The colour that a custom property has now: `light-dark()` is resolved by the browser alone. */
function colour(place: HTMLElement, property: string): string {
  const key = `${property} ${isDark() ? "dark" : "light"}`;
  const known = colours.get(key);
  if (known !== undefined) return known;
  const probe = document.createElement("span");
  probe.style.color = `var(${property})`;
  place.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  colours.set(key, value);
  return value;
}

/** "rgb(…)", as a browser computes a colour, with less cover. */
const seenThrough = (solid: string): string => solid.replace(/^rgb\((.*)\)$/, `rgba($1, ${COVER})`);

function lineTraces(place: HTMLElement, chart: Drawn): Trace[] {
  const times = chart.times.map((time) => instant(time) ?? 0);
  const points = chart.lines.map((line) =>
    chart.rows ? withBreaks(times, line.values) : { x: times, y: line.values.map((value) => value ?? null) },
  );
  return chart.lines.map((line, index) => ({
    type: chart.kind === "bar" ? "bar" : "scatter",
    ...shapeOf(chart, points[index]?.y ?? [], colour(place, `--series-${line.series ?? index + 1}`)),
    name: line.name,
    x: points[index]?.x.map((time) => new Date(time)) ?? [],
    y: points[index]?.y ?? [],
    ...(line.axis === "right" ? { yaxis: "y3" } : {}),
    connectgaps: false,
    line: {
      color: colour(place, `--series-${line.series ?? index + 1}`),
      width: (1.8 * textOf(chart)) / TEXT,
      dash: line.dash ? "dot" : "solid",
    },
    hovertemplate: hover(chart, line),
  }));
}

/** Points, or a line. A point that no line meets has a mark: it could not be seen. */
function shapeOf(chart: Drawn, y: readonly (number | null)[], color: string): Trace {
  const size = (4 * textOf(chart)) / TEXT;
  const lonely = new Set(alone(y));
  if (chart.kind === "points" || chart.kind === "bar" || lonely.size === 0)
    return { mode: chart.kind === "points" ? "markers" : "lines", marker: { color, size: 4 } };
  const sizes = y.map((_, index) => (lonely.has(index) ? 1.6 * size : 0));
  // whole also where the newest lies at the edge
  return { mode: "lines+markers", marker: { color, size: sizes, opacity: 1 }, cliponaxis: false };
}

function hover(chart: Drawn, { name, unit = chart.unit }: Line): string {
  const [least, greatest] = extentOf(chart.lines.flatMap((line) => line.values)) ?? [0, 0];
  const plain = `%{y:${valueFormat(least, greatest)}}`;
  const value = chart.scale === "ratio" ? "%{y:.0%}" : chart.scale === "bytes" ? "%{y:.4~s}B" : plain;
  return `${name} ${value} ${chart.scale === "plain" || !chart.scale ? unit : ""}<extra></extra>`;
}

/** Checkpoints are many, and lie at the foot; the rest at the top, each with a line through the chart. */
const isMinor = (mark: Mark): boolean => mark.kind === "checkpoint";

function markTraces(place: HTMLElement, { marks = [] }: Drawn): Trace[] {
  if (marks.length === 0) return [];
  return [
    {
      type: "scatter",
      mode: "markers",
      name: "what happened",
      x: marks.map((mark) => new Date(mark.t)),
      y: marks.map((mark) => (isMinor(mark) ? 0.03 : 0.97)),
      yaxis: "y2",
      text: marks.map((mark) => wrapped(mark.text)),
      cliponaxis: false,
      marker: {
        color: marks.map((mark) => colour(place, MARKS[mark.kind].colour)),
        symbol: marks.map((mark) => MARKS[mark.kind].symbol),
        size: marks.map((mark) => (isMinor(mark) ? 6 : 9)),
        line: { width: 1.5, color: marks.map((mark) => colour(place, MARKS[mark.kind].colour)) },
      },
      hovertemplate: "%{text}<extra></extra>",
    },
  ];
}

const ESCAPED: Record<string, string> = { "<": "&lt;", ">": "&gt;", "&": "&amp;" };

/** Breaks a text into lines that fit a chart, without anything that Plotly would read as markup. */
function wrapped(text: string): string {
  const plain = text.length > 160 ? `${text.slice(0, 160)}…` : text;
  return plain
    .replace(/(.{1,44})(\s|$)/g, "$1\n")
    .trim()
    .replace(/[<>&]/g, (found) => ESCAPED[found] ?? "")
    .replaceAll("\n", "<br>");
}

const limitLine = (y: number, color: string) => ({
  type: "line",
  xref: "paper",
  x0: 0,
  x1: 1,
  y0: y,
  y1: y,
  line: { color, width: 1.2, dash: "dash" },
});

const markLine = (place: HTMLElement, mark: Mark) => ({
  type: "line",
  layer: "below",
  yref: "paper",
  x0: new Date(mark.t),
  x1: new Date(mark.t),
  y0: 0,
  y1: 1,
  line: { color: colour(place, MARKS[mark.kind].colour), width: 1, dash: "dot" },
});

const linesOf = (chart: Drawn, side: "left" | "right"): Line[] =>
  chart.lines.filter(({ axis = "left" }) => axis === side);

/** The ends of the left axis of a chart with a band: its limits are always in sight. */
function bandRange(chart: Drawn): [number, number] {
  const { low, high } = chart.band ?? {};
  const values = linesOf(chart, "left").flatMap((line) => line.values);
  const [least, greatest] = extentOf([...values, low, high]) ?? [0, 1];
  const room = (greatest - least || Math.abs(greatest) || 1) * 0.08;
  return [least - room, greatest + room];
}

const shaded = (y0: number, y1: number, fillcolor: string) => ({
  type: "rect",
  xref: "paper",
  layer: "below",
  x0: 0,
  x1: 1,
  y0,
  y1,
  fillcolor,
  line: { width: 0 },
});

/** What lies beyond the limits, shaded, with a line at each limit. */
function bandShapes(place: HTMLElement, chart: Drawn): Layout[] {
  const { low, high } = chart.band ?? {};
  const [bottom, top] = bandRange(chart);
  const soft = colour(place, "--failed-soft");
  const edge = colour(place, "--failed");
  return [
    ...(high === undefined ? [] : [shaded(high, top, soft), limitLine(high, edge)]),
    ...(low === undefined ? [] : [shaded(bottom, low, soft), limitLine(low, edge)]),
  ];
}

/** The words of notes, at the top of their lines: in the later half before the line, where there is room. */
function noteWords(place: HTMLElement, chart: Drawn, held: Span | null): Layout[] {
  const { range } = xRange(chart, held) as { range?: [Date, Date] };
  const [from, to] = range ?? [new Date(chart.times[0] ?? NaN), new Date(chart.times.at(-1) ?? NaN)];
  const middle = (from.getTime() + to.getTime()) / 2;
  return (chart.marks ?? [])
    .filter(({ kind }) => kind === "note")
    .map((mark) => ({
      x: new Date(mark.t),
      y: 1,
      yref: "paper",
      yanchor: "top",
      ...(mark.t > middle
        ? { xanchor: "right", xshift: -8, align: "right" }
        : { xanchor: "left", xshift: 8 }),
      showarrow: false,
      text: wrapped(mark.text),
      font: { color: colour(place, "--ink-2"), size: textOf(chart) },
      bgcolor: colour(place, "--surface"),
    }));
}

/** A flat line at 0 needs an axis to lie on. */
function yRange(chart: Drawn, side: "left" | "right"): Layout {
  if (chart.band && side === "left") {
    const [from, to] = bandRange(chart);
    return { range: [from, to], tickformat: tickFormat(from, to), automargin: true };
  }
  if (chart.scale === "ratio") return { range: [0, 1.04], tickformat: ".0%", tickvals: [0, 0.5, 1] };
  const [least, greatest] = extentOf(linesOf(chart, side).flatMap((line) => line.values)) ?? [0, 0];
  const from = chart.zero === false ? least : Math.min(0, least);
  const form = { tickformat: tickFormat(from, greatest), automargin: true };
  return chart.zero !== false && greatest === 0 ? { ...form, range: [0, 1], nticks: 2 } : form;
}

/**
 * The held range, else a range up to now, or up to the last point if the browser's clock is behind the
 * server's.
 */
function xRange({ times, span_ms: wanted }: Drawn, held: Span | null): Layout {
  if (held) return { range: [new Date(held.from), new Date(held.to)] };
  // without a point the library would show a year of its own
  const span_ms = wanted || (times.length === 0 ? EMPTY_MS : 0);
  if (!span_ms) return { autorange: true };
  const end = Math.max(Date.now(), instant(times.at(-1)) ?? 0);
  return { range: [new Date(end - span_ms), new Date(end)] };
}

/** How many times stand at the axis: none lies over the next one. */
const timeTicks = (width: number, text: number): number =>
  Math.max(2, Math.min(5, Math.floor((width - (46 * text) / TEXT) / (TIME_LETTERS * text))));

function layout(place: HTMLElement, chart: Drawn, held: Span | null, width: number): Layout {
  const ink = colour(place, "--ink-3");
  const line = colour(place, "--border");
  const text = textOf(chart);
  const axis = { color: ink, gridcolor: line, zerolinecolor: line, tickfont: { size: text } };
  // time alone is zoomed: the other axes fit what is shown of it
  const upright = {
    ...axis,
    fixedrange: true,
    rangemode: chart.zero === false ? "normal" : "tozero",
    nticks: 4,
  };
  const marked = (chart.marks ?? []).filter((mark) => !isMinor(mark));
  return {
    height: chart.height ?? HEIGHT,
    width,
    margin: { l: (46 * text) / TEXT, r: 8, t: 6, b: 2 * text },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: text, color: ink },
    showlegend: false,
    hovermode: "x unified",
    dragmode: "zoom",
    shapes: [
      ...(chart.limit === undefined ? [] : [limitLine(chart.limit, colour(place, "--failed"))]),
      ...(chart.band ? bandShapes(place, chart) : []),
      ...marked.map((mark) => markLine(place, mark)),
    ],
    annotations: noteWords(place, chart, held),
    hoverlabel: {
      bgcolor: seenThrough(colour(place, "--surface-raised")),
      bordercolor: line,
      font: { color: colour(place, "--ink") },
    },
    xaxis: {
      ...axis,
      type: "date",
      showgrid: false,
      nticks: timeTicks(width, text),
      ...xRange(chart, held),
      tickformatstops: [
        { dtickrange: [null, 59_000], value: "%H:%M:%S" },
        { dtickrange: [60_000, 86_399_000], value: "%H:%M" },
        { dtickrange: [86_400_000, null], value: "%-d %b" },
      ],
    },
    yaxis: { ...upright, ...yRange(chart, "left") },
    yaxis2: { overlaying: "y", range: [0, 1], fixedrange: true, visible: false },
    ...(linesOf(chart, "right").length > 0
      ? { yaxis3: { ...upright, overlaying: "y", side: "right", showgrid: false, ...yRange(chart, "right") } }
      : {}),
  };
}

/** The new span of the time axis in an event of Plotly; null when the event does not change it. */
export function spanIn(change: Record<string, unknown>): Span | null {
  const range = change["xaxis.range"];
  const [from, to] = Array.isArray(range) ? range : [change["xaxis.range[0]"], change["xaxis.range[1]"]];
  const span = { from: localTime(from), to: localTime(to) };
  return span.from < span.to ? span : null;
}

export interface Picked {
  /** ms since the epoch */
  time: number;
  /** the place of its curve among those that are drawn; a greater one is that of marks */
  curve: number;
}

/** What Plotly says of a point: `xPixel` and `yPixel` from the corner of the chart. */
interface ClickedPoint {
  x?: unknown;
  curveNumber?: number;
  xPixel?: number;
  yPixel?: number;
}

/**
 * The point of a click; null when it met none. Plotly names a point of each curve at that time: meant is the
 * one nearest to the pointer. `corner`: where the chart begins, in the coordinates of the pointer.
 */
export function pickedIn(
  click: Record<string, unknown>,
  corner: { left: number; top: number },
): Picked | null {
  const points = Array.isArray(click.points) ? (click.points as ClickedPoint[]) : [];
  const pointer = click.event as { clientX?: number; clientY?: number } | undefined;
  const x = (pointer?.clientX ?? 0) - corner.left;
  const y = (pointer?.clientY ?? 0) - corner.top;
  const far = ({ xPixel = Infinity, yPixel = Infinity }: ClickedPoint) => Math.hypot(xPixel - x, yPixel - y);
  const [nearest] = [...points].sort((a, b) => (far(a) < far(b) ? -1 : far(a) > far(b) ? 1 : 0));
  const time = localTime(nearest?.x);
  return Number.isNaN(time) ? null : { time, curve: nearest?.curveNumber ?? 0 };
}

/** Plotly writes times as "2026-11-23 04:12:33.1234", of the browser's zone. */
const localTime = (value: unknown): number =>
  typeof value === "string" ? Date.parse(value.replace(" ", "T")) : Number(value ?? NaN);
