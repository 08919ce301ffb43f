/** What Plotly draws of a chart. */
import type { default as PlotlyModule, Layout, Plot, Trace } from "plotly.js-basic-dist-min";
import type { Flags } from "../flags";
import { withBreaks } from "../curve-gaps";
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
  /** the values as they were written, where a number would lose digits */
  texts?: (string | null)[];
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
}

export const HEIGHT = 170;

/** How each kind of mark looks: by colour and shape. */
export const MARKS: Record<MarkKind, { word: string; colour: string; symbol: string; glyph: string }> = {
  handover: { word: "handover", colour: "--moving", symbol: "diamond", glyph: "◆" },
  deployment: { word: "deployment", colour: "--standby", symbol: "triangle-down", glyph: "▼" },
  checkpoint: { word: "checkpoint", colour: "--ink-3", symbol: "line-ns-open", glyph: "|" },
  fault: { word: "fault", colour: "--failed", symbol: "square", glyph: "■" },
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
  return plotly.react(place, data, { ...layout(place, chart, held), width }, CONFIG);
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

function lineTraces(place: HTMLElement, chart: Drawn): Trace[] {
  const times = chart.times.map((time) => instant(time) ?? 0);
  const points = chart.lines.map((line) =>
    chart.rows ? withBreaks(times, line.values) : { x: times, y: line.values.map((value) => value ?? null) },
  );
  return chart.lines.map((line, index) => ({
    type: chart.kind === "bar" ? "bar" : "scatter",
    mode: chart.kind === "points" ? "markers" : "lines",
    marker: { color: colour(place, `--series-${line.series ?? index + 1}`), size: 4 },
    name: line.name,
    x: points[index]?.x.map((time) => new Date(time)) ?? [],
    y: points[index]?.y ?? [],
    connectgaps: false,
    line: {
      color: colour(place, `--series-${line.series ?? index + 1}`),
      width: 1.8,
      dash: line.dash ? "dot" : "solid",
    },
    hovertemplate: hover(chart, line),
  }));
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

/** A flat line at 0 needs an axis to lie on. */
function yRange(chart: Drawn): Layout {
  if (chart.scale === "ratio") return { range: [0, 1.04], tickformat: ".0%", tickvals: [0, 0.5, 1] };
  const [least, greatest] = extentOf(chart.lines.flatMap((line) => line.values)) ?? [0, 0];
  const from = chart.zero === false ? least : Math.min(0, least);
  const form = { tickformat: tickFormat(from, greatest), automargin: true };
  return chart.zero !== false && greatest === 0 ? { ...form, range: [0, 1], nticks: 2 } : form;
}

/**
 * The held range, else a range up to now, or up to the last point if the browser's clock is behind the
 * server's.
 */
function xRange({ times, span_ms }: Drawn, held: Span | null): Layout {
  if (held) return { range: [new Date(held.from), new Date(held.to)] };
  if (!span_ms) return { autorange: true };
  const end = Math.max(Date.now(), instant(times.at(-1)) ?? 0);
  return { range: [new Date(end - span_ms), new Date(end)] };
}

function layout(place: HTMLElement, chart: Drawn, held: Span | null): Layout {
  const ink = colour(place, "--ink-3");
  const line = colour(place, "--border");
  const axis = { color: ink, gridcolor: line, zerolinecolor: line, tickfont: { size: 11 } };
  const marked = (chart.marks ?? []).filter((mark) => !isMinor(mark));
  return {
    height: chart.height ?? HEIGHT,
    margin: { l: 46, r: 8, t: 6, b: 22 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 11, color: ink },
    showlegend: false,
    hovermode: "x unified",
    dragmode: "zoom",
    shapes: [
      ...(chart.limit === undefined ? [] : [limitLine(chart.limit, colour(place, "--failed"))]),
      ...marked.map((mark) => markLine(place, mark)),
    ],
    hoverlabel: {
      bgcolor: colour(place, "--surface-raised"),
      bordercolor: line,
      font: { color: colour(place, "--ink") },
    },
    xaxis: {
      ...axis,
      type: "date",
      showgrid: false,
      nticks: 5,
      ...xRange(chart, held),
      tickformatstops: [
        { dtickrange: [null, 59_000], value: "%H:%M:%S" },
        { dtickrange: [60_000, 86_399_000], value: "%H:%M" },
        { dtickrange: [86_400_000, null], value: "%-d %b" },
      ],
    },
    // time alone is zoomed: the other axis fits what is shown of it
    yaxis: {
      ...axis,
      fixedrange: true,
      rangemode: chart.zero === false ? "normal" : "tozero",
      nticks: 4,
      ...yRange(chart),
    },
    yaxis2: { overlaying: "y", range: [0, 1], fixedrange: true, visible: false },
  };
}

/** The new span of the time axis in an event of Plotly; null when the event does not change it. */
export function spanIn(change: Record<string, unknown>): Span | null {
  const range = change["xaxis.range"];
  const [from, to] = Array.isArray(range) ? range : [change["xaxis.range[0]"], change["xaxis.range[1]"]];
  const span = { from: localTime(from), to: localTime(to) };
  return span.from < span.to ? span : null;
}

/** Plotly writes times as "2026-11-23 04:12:33.1234", of the browser's zone. */
const localTime = (value: unknown): number =>
  typeof value === "string" ? Date.parse(value.replace(" ", "T")) : Number(value ?? NaN);
