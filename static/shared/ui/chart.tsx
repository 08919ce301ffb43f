import { useEffect, useRef, useState } from "react";
import type { default as PlotlyModule, Layout, Trace } from "plotly.js-basic-dist-min";
import { instant } from "../format";
import "./plotly.css";

type Plotly = typeof PlotlyModule;

let library: Promise<Plotly> | null = null;
const load = (): Promise<Plotly> => (library ??= loadOnce());

async function loadOnce(): Promise<Plotly> {
  // an element with this id and class keeps Plotly from adding inline styles: plotly.css has them
  const mark = document.createElement("template");
  mark.id = "plotly.js-style-global";
  mark.className = "no-inline-styles";
  document.head.append(mark);
  return (await import("plotly.js-basic-dist-min")).default;
}

interface Line {
  name: string;
  values: (number | null | undefined)[];
  /** 1 to 7: the place in the chart scale */
  series?: number;
  dash?: boolean;
}

interface Props {
  title: string;
  unit: string;
  times: (number | string)[];
  lines: Line[];
  height?: number;
  /** "ratio": 0 to 1, shown as percent */
  scale?: "ratio" | "bytes" | "plain";
  /** false: the axis need not start at 0 */
  zero?: boolean;
  /** true: join points over missing values, as of several keys in one stream */
  gaps?: boolean;
  kind?: "line" | "bar" | "points";
  /** how much time the axis spans, up to now; absent: as long as there are points */
  span_ms?: number;
  /** a horizontal line, such as an alert's */
  limit?: number;
}

/** The colour that a custom property has now: `light-dark()` is resolved by the browser alone. */
function colour(place: HTMLElement, property: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${property})`;
  place.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

function draw(place: HTMLElement, plotly: Plotly, props: Props, width: number): Promise<void> {
  const xs = props.times.map((time) => new Date(instant(time) ?? 0));
  const data: Trace[] = props.lines.map((line, index) => ({
    type: props.kind === "bar" ? "bar" : "scatter",
    mode: props.kind === "points" ? "markers" : "lines",
    marker: { color: colour(place, `--series-${line.series ?? index + 1}`), size: 4 },
    name: line.name,
    x: xs,
    y: line.values.map((value) => value ?? null),
    connectgaps: props.gaps ?? false,
    line: {
      color: colour(place, `--series-${line.series ?? index + 1}`),
      width: 1.8,
      dash: line.dash ? "dot" : "solid",
    },
    hovertemplate: hover(props, line.name),
  }));
  return plotly.react(
    place,
    data,
    { ...layout(place, props), width },
    {
      displaylogo: false,
      responsive: false,
      displayModeBar: false,
      scrollZoom: false,
    },
  );
}

function hover(props: Props, name: string): string {
  const value = props.scale === "ratio" ? "%{y:.0%}" : props.scale === "bytes" ? "%{y:.3s}B" : "%{y:,.3~r}";
  return `${name} ${value} ${props.scale === "plain" || !props.scale ? props.unit : ""}<extra></extra>`;
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

/** A flat line at 0 needs an axis to lie on. */
function yRange(props: Props): Layout {
  if (props.scale === "ratio") return { range: [0, 1.04], tickformat: ".0%", tickvals: [0, 0.5, 1] };
  const top = Math.max(0, ...props.lines.flatMap((line) => line.values.map((value) => value ?? 0)));
  const form = { tickformat: top < 1 && props.zero === false ? ".3~g" : ".2~s" };
  return props.zero !== false && top < 1 ? { ...form, range: [0, 1], nticks: 2 } : form;
}

/** Up to now; or to the last point, where the browser's clock is behind the server's. */
function newest(times: Props["times"], span_ms: number): [Date, Date] {
  const end = Math.max(Date.now(), instant(times.at(-1)) ?? 0);
  return [new Date(end - span_ms), new Date(end)];
}

function layout(place: HTMLElement, props: Props): Layout {
  const ink = colour(place, "--ink-3");
  const line = colour(place, "--border");
  const axis = {
    color: ink,
    gridcolor: line,
    zerolinecolor: line,
    tickfont: { size: 11 },
    fixedrange: false,
  };
  return {
    height: props.height ?? 170,
    margin: { l: 46, r: 8, t: 6, b: 22 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 11, color: ink },
    showlegend: false,
    hovermode: "x unified",
    shapes: props.limit === undefined ? [] : [limitLine(props.limit, colour(place, "--failed"))],
    hoverlabel: {
      bgcolor: colour(place, "--surface-raised"),
      bordercolor: line,
      font: { color: colour(place, "--ink") },
    },
    uirevision: `${props.title} ${props.span_ms ?? ""}`,
    xaxis: {
      ...axis,
      type: "date",
      showgrid: false,
      nticks: 5,
      ...(props.span_ms ? { range: newest(props.times, props.span_ms) } : {}),
      tickformatstops: [
        { dtickrange: [null, 59_000], value: "%H:%M:%S" },
        { dtickrange: [60_000, null], value: "%H:%M" },
      ],
    },
    yaxis: {
      ...axis,
      rangemode: props.zero === false ? "normal" : "tozero",
      nticks: 4,
      ...yRange(props),
    },
  };
}

/** A Plotly line chart with pan, zoom and a table of the same figures. */
export function Chart(props: Props) {
  const place = useRef<HTMLDivElement>(null);
  const [plotly, setPlotly] = useState<Plotly | null>(null);
  const [table, setTable] = useState(false);
  const [theme, setTheme] = useState(0);
  const [width, setWidth] = useState(0);
  const drawing = useRef<Promise<void>>(Promise.resolve());
  useEffect(() => void load().then((module) => setPlotly(() => module)), []);
  useEffect(() => {
    const changed = () => setTheme((old) => old + 1);
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    window.addEventListener("fogline:theme", changed);
    system.addEventListener("change", changed);
    return () => {
      window.removeEventListener("fogline:theme", changed);
      system.removeEventListener("change", changed);
    };
  }, []);
  useEffect(() => {
    const target = place.current;
    if (!target || !plotly || table || width === 0) return;
    drawing.current = drawing.current.then(() => draw(target, plotly, props, width)).catch(() => undefined);
  }, [plotly, props, table, theme, width]);
  useEffect(() => {
    const target = place.current;
    if (!target) return;
    const watch = new ResizeObserver(() => setWidth(Math.round(target.clientWidth)));
    watch.observe(target);
    return () => watch.disconnect();
  }, [table]);
  useEffect(() => {
    const target = place.current;
    if (!target || !plotly || table) return;
    // Plotly draws in steps of its own: it is taken down only when they are over
    return () => void drawing.current.finally(() => plotly.purge(target));
  }, [plotly, table]);
  return (
    <figure className="chart">
      <figcaption className="chart__head">
        {props.title && <span className="section-title">{props.title}</span>}
        <span className="muted small">{props.unit}</span>
        <Legend lines={props.lines} left={!props.title} />
        <button
          className="button button--quiet button--small"
          aria-pressed={table}
          onClick={() => setTable(!table)}
        >
          {table ? "Chart" : "Table"}
        </button>
      </figcaption>
      {table ? (
        <ChartTable {...props} />
      ) : (
        <div
          ref={place}
          className="chart__plot"
          style={{ height: props.height ?? 170 }}
          role="img"
          aria-label={[props.title || props.lines.map((line) => line.name).join(", "), props.unit]
            .filter(Boolean)
            .join(", ")}
        />
      )}
      {!table && props.times.length === 0 && <p className="chart__none muted small">No figures yet</p>}
    </figure>
  );
}

function Legend({ lines, left }: { lines: Line[]; left: boolean }) {
  if (lines.length < 2) return <span className="spring" />;
  return (
    <span className={`chart__legend spring${left ? " chart__legend--left" : ""}`}>
      {lines.map((line, index) => (
        <span key={line.name} className="row small muted">
          <span
            className="chart__swatch"
            style={{ background: `var(--series-${line.series ?? index + 1})` }}
          />
          {line.name}
        </span>
      ))}
    </span>
  );
}

function ChartTable({ times, lines, height }: Props) {
  const rows = times
    .map((time, index) => ({ time, index }))
    .reverse()
    .slice(0, 200);
  return (
    <div
      className="table-wrap"
      style={{ maxHeight: height ?? 170, overflowY: "auto" }}
      tabIndex={0}
      role="region"
      aria-label="Figures"
    >
      <table className="table">
        <thead>
          <tr>
            <th>Time</th>
            {lines.map((line) => (
              <th key={line.name} className="num">
                {line.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ time, index }) => (
            <tr key={index}>
              <td className="num">{new Date(instant(time) ?? 0).toLocaleTimeString()}</td>
              {lines.map((line) => (
                <td key={line.name} className="num">
                  {line.values[index] == null ? "–" : Number(line.values[index]).toPrecision(4)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
