/** How much of a table its tile can show, with letters that can be read. Pure. */
import { cellText, type RowColumn } from "../shared/rows/cells";
import type { Room } from "./room";

/** As wide as the room around a cell, in letters. */
const ROOM_LETTERS = 3;
/** As wide as the arrow to a row's trace, in letters. */
const ARROW_LETTERS = 3;
/** A longer text is cut, as table.css has it. */
const CELL_LETTERS_MAX = 32;
/** How wide a letter is, by its size. */
const LETTER = 0.57;
/** How high a row is: by the size of its letters, and px around them. */
const ROW = { line: 1.4, around: 9 };
/** px, and by the width of the tile */
const MOST = { px: 28, share: 0.034 };
/** On a screen that is read from afar, letters grow up to so many times the least. */
const MOST_AFAR = 1.3;

export interface Widths {
  /** of the time of a row, letters */
  time: number;
  /** by the places of the columns, letters */
  columns: number[];
}

export interface Fit {
  /** of its letters */
  text_px: number;
  timed: boolean;
  columns: number;
  rows: number;
}

/** How many letters the widest cell of each column has, with the room around it. */
export function widthsOf(
  columns: readonly RowColumn[],
  rows: readonly { values: readonly unknown[] }[],
  times: readonly string[],
  traced: boolean,
): Widths {
  return {
    time: Math.max(4, ...times.map((time) => time.length)) + (traced ? ARROW_LETTERS : 0) + ROOM_LETTERS,
    columns: columns.map(({ name, type, decimals }, place) => {
      const cells = rows.map(({ values }) => (cellText(values[place], type, decimals) ?? "").length);
      return Math.min(CELL_LETTERS_MAX, Math.max(name.length, ...cells)) + ROOM_LETTERS;
    }),
  };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);

/** So large are letters, px, if so many fit beside each other. */
const sizeFor = (letters: number, width: number): number => width / (LETTER * letters);

/** What does not fit at a desk is scrolled. From afar, letters stay large and the rest is left out. */
export function fitTable(room: Room, widths: Widths, rows: number): Fit {
  return room.afar ? fitAfar(room, widths, rows) : fitDesk(room, widths, rows);
}

function fitDesk({ width, least_px }: Room, { time, columns }: Widths, rows: number): Fit {
  const size = Math.min(MOST.px, MOST.share * width, sizeFor(time + sum(columns), width));
  return { text_px: Math.max(least_px, size), timed: true, columns: columns.length, rows };
}

/** The times go first, then the last columns, of which one stays. Of the rows, the oldest go. */
function fitAfar({ width, height, least_px }: Room, { time, columns }: Widths, rows: number): Fit {
  const fits = (letters: number) => sizeFor(letters, width) >= least_px;
  const timed = fits(time + sum(columns));
  let shown = columns.length;
  while (shown > 1 && !fits(sum(columns.slice(0, shown)))) shown -= 1;
  const letters = (timed ? time : 0) + sum(columns.slice(0, shown));
  const most = Math.max(MOST.px, MOST_AFAR * least_px);
  const text_px = Math.max(least_px, Math.min(most, sizeFor(letters, width)));
  const row_px = ROW.line * text_px + ROW.around;
  // the head, and the line that says what is left out
  const lines = Math.floor(height / row_px) - 1 - (shown < columns.length ? 1 : 0);
  return { text_px, timed, columns: shown, rows: Math.max(1, Math.min(rows, lines)) };
}
