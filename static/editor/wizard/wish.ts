/** What somebody wants of a file, and the elements that do it. Pure. */
import type { FieldType } from "../../shared/files/types";
import { elementsOf, findElement, placeOf } from "../../shared/document";
import type { DocElement, PipelineDocument } from "../../shared/types";
import { CARD } from "../places";
import { changeElement, freshId } from "../edits";

export interface Column {
  name: string;
  type: FieldType;
  unit: string | null;
}

export interface Wish {
  column: string;
  /** an average, and an alarm, for each value of this column; empty: of all rows */
  by: string;
  /** of the average, s */
  size_s: number;
  /** as it was typed; empty: no alarm */
  above: string;
  for_s: string;
  /** empty: Fogline chooses */
  node: string;
  wall: boolean;
}

const isNumber = ({ type }: Column): boolean => type === "number" || type === "integer";

/** The columns that may be averaged: numbers, those with a unit first. */
export const measured = (columns: readonly Column[]): Column[] =>
  columns.filter(isNumber).sort((a, b) => Number(!a.unit) - Number(!b.unit));

/** The columns that may name a machine: texts before whole numbers. */
export const naming = (columns: readonly Column[]): Column[] =>
  columns
    .filter(({ type }) => type === "string" || type === "integer")
    .sort((a, b) => Number(a.type === "integer") - Number(b.type === "integer"));

/** What is offered at first: the first column of numbers, for each value of the first text, in a minute. */
export function firstWish(columns: readonly Column[]): Wish {
  const [text] = naming(columns);
  return {
    column: measured(columns)[0]?.name ?? "",
    by: text?.type === "string" ? text.name : "",
    size_s: 60,
    above: "",
    for_s: "0",
    node: "",
    wall: true,
  };
}

/** A comma is read as a point; NaN: no number. */
export const numberIn = (typed: string): number =>
  typed.trim() === "" ? NaN : Number(typed.trim().replace(",", "."));

/** Why it cannot be made yet; null when it can. */
export function faultOf({ column, above, for_s }: Wish): string | null {
  if (!column) return "The file has no column of numbers.";
  if (above.trim() === "") return null;
  if (Number.isNaN(numberIn(above))) return "The limit is a number, or empty.";
  const seconds = numberIn(for_s);
  return Number.isNaN(seconds) || seconds < 0 ? "The time above the limit is a number of seconds." : null;
}

/** The name of the averaged column. */
export const averageName = ({ column }: Pick<Wish, "column">): string => `${column}_average`;

export interface Made {
  document: PipelineDocument;
  /** the element of the averages */
  average: string;
  /** the element of the alarms; null when none is wished for */
  alarm: string | null;
}

const RIGHT = CARD.width + 88;
const DOWN = CARD.height + 60;

/** The document with the elements that fulfil the wish, behind the source `source`. */
export function made(document: PipelineDocument, source: string, wish: Wish): Made {
  const taken = elementsOf(document).map(({ id }) => id);
  const from = findElement(document, source);
  const at = (from && placeOf(from)) ?? { x: 0, y: 0 };
  const added: DocElement[] = [];
  const place = wish.node ? { node: wish.node } : {};
  const add = (
    type: string,
    title: string,
    from: string,
    params: Record<string, unknown>,
    column: number,
    row: number,
    runs = true,
  ): string => {
    const id = freshId([...taken, ...added.map((each) => each.id)], type);
    const ui = { x: at.x + column * RIGHT, y: at.y + row * DOWN };
    added.push({ id, type, title, params, inputs: { in: from }, ui, ...(runs ? place : {}) });
    return id;
  };
  const by = wish.by ? [wish.by] : [];
  const each = wish.by ? `, each ${wish.by}` : "";
  const averages = { function: "avg", column: wish.column, as: averageName(wish) };
  const average = add(
    "window-aggregate",
    `Average ${wish.column}${each}`,
    source,
    { size_s: wish.size_s, keys: by, aggregates: [averages] },
    1,
    0,
  );
  const limit = numberIn(wish.above);
  const alarmed = !Number.isNaN(limit);
  add(
    "live-chart",
    `Chart of ${wish.column}`,
    average,
    {
      columns: [averageName(wish)],
      window_s: 60 * wish.size_s,
      ...(wish.by ? { by: wish.by } : {}),
      ...(alarmed ? { limit } : {}),
    },
    2,
    0,
    false,
  );
  let alarm: string | null = null;
  if (alarmed) {
    alarm = add(
      "hysteresis-alarm",
      // no figure: the limit may be changed later
      `${wish.column} too high`,
      source,
      {
        column: wish.column,
        direction: "above",
        raise_at: limit,
        clear_at: limit,
        for_s: numberIn(wish.for_s),
        ...(wish.by ? { key: wish.by } : {}),
      },
      1,
      1,
    );
    add("live-table", "Alarms", alarm, { rows: 50 }, 2, 1, false);
  }
  const pinned = wish.node ? changeElement(document, source, place) : document;
  const elements = [...elementsOf(pinned), ...added];
  return { document: { ...pinned, spec: { ...pinned.spec, elements } }, average, alarm };
}
