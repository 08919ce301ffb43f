/** How many digits a chart shows of its figures: as many as tell its values apart. Pure. */

const TICKS = 4;
const DIGITS_MAX = 15;

const within = (value: number, least: number, most: number): number => Math.min(most, Math.max(least, value));

/** The least and the greatest of the values; null when there are none. */
export function extentOf(values: Iterable<number | null | undefined>): [number, number] | null {
  let extent: [number, number] | null = null;
  for (const value of values)
    if (value != null && Number.isFinite(value))
      extent = extent ? [Math.min(extent[0], value), Math.max(extent[1], value)] : [value, value];
  return extent;
}

/** The decimals that tell values apart which differ by `step`: 2 for 0.025. */
const decimalsOf = (step: number): number => within(Math.ceil(-Math.log10(step)), 0, DIGITS_MAX);

/**
 * The d3 format of an axis from `least` to `greatest`: "1.2M" when that tells its ticks apart, else with all digits
 * that do.
 */
export function tickFormat(least: number, greatest: number): string {
  const most = Math.max(Math.abs(least), Math.abs(greatest));
  const step = (greatest - least || most || 1) / TICKS;
  const significant = Math.ceil(Math.log10(most / step || 1)) + 1;
  const isLong = most >= 10_000 || (most > 0 && most < 0.001);
  if (isLong && significant <= 4) return `.${within(significant, 2, 4)}~s`;
  return `,.${decimalsOf(step)}~f`;
}

/** The d3 format of a single value of a chart whose values go from `least` to `greatest`. */
export function valueFormat(least: number, greatest: number): string {
  const span = greatest - least || Math.abs(greatest) || 1;
  const decimals = Math.ceil(-Math.log10(span)) + 3;
  return decimals > DIGITS_MAX ? ".6~g" : `,.${within(decimals, 0, DIGITS_MAX)}~f`;
}
