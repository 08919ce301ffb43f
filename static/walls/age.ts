/** How old a figure is, and whether that is longer than usual. Pure. */
import { seconds } from "../shared/format";
import type { SourceState } from "../shared/types";

/** Nothing is called old before this: reports come each second, and a wall asks every 2 s. */
const FRESH_MS = 15_000;
/** A stream that was silent for so many times its usual distance of rows has stopped. */
const TIMES = 5;

export interface Age {
  /** null: no row ever came */
  ms: number | null;
  /** older than the stream's rows usually become */
  aged: boolean;
}

/**
 * `now`: by the server's clock, ms since the epoch. `every_ms`: how far apart rows usually are; null if
 * that is not known. With several sources the oldest counts: one that stands must not hide behind one that
 * goes on.
 */
export function ageOf(
  sources: readonly Pick<SourceState, "last_row_at" | "problem">[],
  every_ms: number | null,
  now: number,
): Age {
  const known = sources.map(({ last_row_at }) => (last_row_at === null ? NaN : Date.parse(last_row_at)));
  if (known.length === 0 || known.some(Number.isNaN)) return { ms: null, aged: false };
  const ms = Math.max(0, now - Math.min(...known));
  return { ms, aged: ms > Math.max(FRESH_MS, TIMES * (every_ms ?? 0)) };
}

/** "4 s", "12 min 5 s", "3 h", "2 d": short, since it stands on every tile. */
export function ageWords(ms: number): string {
  if (ms < 3_600_000) return seconds(ms);
  return ms < 86_400_000 ? `${Math.floor(ms / 3_600_000)} h` : `${Math.floor(ms / 86_400_000)} d`;
}

/** How far apart the times usually are, ms; null if there are too few. `times`: rising. */
export function usualGap(times: readonly number[]): number | null {
  const gaps = times
    .slice(1)
    .map((time, index) => time - (times[index] ?? time))
    .filter((gap) => gap > 0)
    .sort((a, b) => a - b);
  return gaps[Math.floor(gaps.length / 2)] ?? null;
}

export type Verdict = "low" | "high" | null;

/** Which limit a value breaks; null for none. */
export function verdictOf(
  value: unknown,
  low: number | null | undefined,
  high: number | null | undefined,
): Verdict {
  if (typeof value !== "number") return null;
  if (high != null && value > high) return "high";
  return low != null && value < low ? "low" : null;
}

const DIGITS = 4;
const CELL_DIGITS = 6;
/** Numbers of one column have the same decimals if the greatest has at most so many digits more than the least. */
const SIZES_APART = 2;

/** A number with as many digits as can be read from afar. A whole number keeps all of them. */
export const legible = (value: unknown): unknown =>
  typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(CELL_DIGITS)) : value;

/**
 * How many decimals the numbers of a column have, so that their points stand below each other. Nothing where all are
 * whole, or where they are of very different sizes.
 */
export function decimalsOf(values: readonly unknown[]): number | undefined {
  const numbers = values.filter((value) => typeof value === "number" && value !== 0) as number[];
  if (numbers.every(Number.isInteger)) return undefined;
  const room = numbers.map((each) => Math.max(0, CELL_DIGITS - 1 - Math.floor(Math.log10(Math.abs(each)))));
  const least = Math.min(...room);
  if (Math.max(...room) - least > SIZES_APART) return undefined;
  const had = numbers.map((each) => String(legible(each)).split(".")[1]?.length ?? 0);
  return Math.min(least, Math.max(...had));
}

/** A figure as it is read from afar: few digits, or as many decimals as its tile asks for. */
export function figureText(value: unknown, decimals: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  const digits =
    decimals != null
      ? { minimumFractionDigits: decimals, maximumFractionDigits: decimals }
      : Math.abs(value) >= 10 ** (DIGITS - 1)
        ? { maximumFractionDigits: 0 }
        : { maximumSignificantDigits: DIGITS };
  return value.toLocaleString("en", digits);
}
