/** How marks of true and false look, and what Plotly draws of them. */
import type { Trace } from "plotly.js-basic-dist-min";
import type { Flags } from "../flags";

/** The look of each column by its place: status colours, which no curve has, each with its own shape. */
const LOOKS = [
  { colour: "--failed", symbol: "triangle-down", glyph: "▼" },
  { colour: "--moving", symbol: "diamond", glyph: "◆" },
  { colour: "--standby", symbol: "circle", glyph: "●" },
  { colour: "--running", symbol: "square", glyph: "■" },
  { colour: "--lagging", symbol: "triangle-up", glyph: "▲" },
] as const;

export const flagLook = (index: number) => LOOKS[index % LOOKS.length] ?? LOOKS[0];

/** Drawn flags keep the look of their place while others are hidden. */
export interface DrawnFlags extends Flags {
  index: number;
}

/** The rows of shapes lie at the top of the chart, one below the other: px. */
const TOP = 6;
const STEP = 13;

/** Two traces a column, however many rows: its shapes, and thin lines where a run of them begins. */
export function flagTraces(
  flags: readonly DrawnFlags[],
  height: number,
  colourOf: (property: string) => string,
): Trace[] {
  return flags.flatMap(({ name, times, begins, index }) => {
    const look = flagLook(index);
    const color = colourOf(look.colour);
    const y = 1 - (TOP + STEP * index) / height;
    const lines = begins.flatMap((t) => [new Date(t), new Date(t), null]);
    return [
      {
        type: "scatter",
        mode: "lines",
        x: lines,
        y: begins.flatMap(() => [0, y, null]),
        yaxis: "y2",
        line: { color, width: 1, dash: "dot" },
        hoverinfo: "skip",
      },
      {
        type: "scatter",
        mode: "markers",
        name,
        x: times.map((t) => new Date(t)),
        y: times.map(() => y),
        yaxis: "y2",
        marker: { color, symbol: look.symbol, size: 8 },
        hovertemplate: `${look.glyph} ${name}<extra></extra>`,
      },
    ];
  });
}
