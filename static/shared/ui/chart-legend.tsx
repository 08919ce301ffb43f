import type { ReactNode } from "react";
import type { Flags } from "../flags";
import { flagLook } from "./chart-flags";
import type { Line } from "./chart-plot";

export const lineKey = ({ name }: { name: string }): string => `line ${name}`;
export const flagKey = ({ name }: { name: string }): string => `flag ${name}`;

/** As many letters stand beside a title in a narrow chart; more stand on a line of their own. */
const LETTERS_BESIDE = 16;

interface Props {
  lines: readonly Line[];
  flags: readonly Flags[];
  hidden: ReadonlySet<string>;
  onToggle: (key: string) => void;
  left: boolean;
}

/** What the curves and marks of a chart are; a click hides one, or shows it again. */
export function Legend({ lines, flags, hidden, onToggle, left }: Props) {
  if (lines.length + flags.length < 2) return <span className="spring" />;
  const entry = (key: string, name: string, sign: ReactNode, unit?: string) => (
    <button
      key={key}
      type="button"
      className="chart__key"
      aria-pressed={!hidden.has(key)}
      title={hidden.has(key) ? `Show ${name}` : `Hide ${name}`}
      onClick={() => onToggle(key)}
    >
      {sign}
      <span className="chart__name">{name}</span>
      {unit && <span className="chart__unit">{unit}</span>}
    </button>
  );
  const long = [...lines, ...flags].reduce((sum, { name }) => sum + name.length, 0) > LETTERS_BESIDE;
  return (
    <span
      className={`chart__legend spring${left ? " chart__legend--left" : ""}${long ? " chart__legend--long" : ""}`}
    >
      {lines.map((line, index) =>
        entry(
          lineKey(line),
          line.name,
          <span
            className={`chart__swatch${line.dash ? " chart__swatch--dash" : ""}`}
            style={{ color: `var(--series-${line.series ?? index + 1})` }}
          />,
          line.unit,
        ),
      )}
      {flags.map((each, index) =>
        entry(
          flagKey(each),
          each.name,
          <span aria-hidden="true" style={{ color: `var(${flagLook(index).colour})` }}>
            {flagLook(index).glyph}
          </span>,
        ),
      )}
    </span>
  );
}
