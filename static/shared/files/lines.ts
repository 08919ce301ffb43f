/** A line of a file as it lies, divided where its delimiter stands. Pure. */

export interface Piece {
  text: string;
  /** the number of its cell; null for a delimiter */
  cell: number | null;
}

/** Divides a line at each delimiter that is not within quotes. All pieces together are the line. */
export function pieces(
  line: string,
  delimiter: string,
  quote: string,
  cuts: readonly number[] = [],
): Piece[] {
  if (delimiter === "places") return atPlaces(line, cuts);
  const found: Piece[] = [];
  const whitespace = delimiter === "whitespace";
  let start = 0;
  let cell = 0;
  let opened = false;
  let quoted = false;
  let at = 0;
  const cut = (length: number) => {
    found.push({ text: line.slice(start, at), cell });
    found.push({ text: line.slice(at, at + length), cell: null });
    cell += 1;
    opened = false;
    at += length;
    start = at;
  };
  while (at < line.length) {
    const length = quoted
      ? 0
      : whitespace
        ? runAt(line, at)
        : line.startsWith(delimiter, at)
          ? delimiter.length
          : 0;
    if (length > 0 && !(whitespace && (at === 0 || at + length === line.length))) {
      cut(length);
      continue;
    }
    // a quotation mark opens a cell only at its beginning; within it, two stand for one
    if (quote && line[at] === quote && (opened || line.slice(start, at).trim() === "")) {
      opened = true;
      quoted = !quoted;
    }
    at += Math.max(length, 1);
  }
  found.push({ text: line.slice(start), cell });
  return found;
}

/** Cells of fixed places; what divides two of them is nothing but a place. */
const atPlaces = (line: string, cuts: readonly number[]): Piece[] =>
  [0, ...cuts].flatMap((begin, cell) => {
    const text = line.slice(begin, cuts[cell]);
    return cell === 0
      ? [{ text, cell }]
      : [
          { text: "", cell: null },
          { text, cell },
        ];
  });

const runAt = (line: string, at: number): number => /^[ \t]+/.exec(line.slice(at, at + 200))?.[0].length ?? 0;

/** What is drawn for a delimiter: a tab and a space are not seen. */
export const drawn = (delimiter: string): string => delimiter.replaceAll("\t", "→").replaceAll(" ", "·");
