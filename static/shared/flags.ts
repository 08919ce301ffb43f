/** Rows at which a column of true and false is true, as marks in a chart. Pure. */

export interface Flags {
  /** the column's */
  name: string;
  /** ms since the epoch, of each row at which it is true */
  times: number[];
  /** of those rows whose previous row was not true: a line goes through the chart there */
  begins: number[];
}

export interface FlagRow {
  t: number;
  /** whose row it is: runs of several keys may overlap */
  key: string;
  value: Record<string, unknown> | null;
}

export const FLAGS_MAX = 5;

/** `rows`: oldest first. */
export function flagsOf(rows: readonly FlagRow[], columns: readonly string[]): Flags[] {
  return columns.slice(0, FLAGS_MAX).map((name) => {
    const [times, begins]: [number[], number[]] = [[], []];
    const before = new Map<string, boolean>();
    for (const { t, key, value } of rows) {
      const now = value?.[name] === true;
      if (now) times.push(t);
      if (now && !before.get(key)) begins.push(t);
      before.set(key, now);
    }
    return { name, times, begins };
  });
}

/** The flags in words, for the table and the file of the figures. */
export const toldFlags = (flags: readonly Flags[]): { t: number; text: string }[] =>
  flags.flatMap(({ name, times }) => times.map((t) => ({ t, text: name })));
