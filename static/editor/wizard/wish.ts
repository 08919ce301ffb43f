/** What somebody wants of a file, and the elements that do it. Pure. */
import type { FieldType } from "../../shared/files/types";
import { elementsOf, findElement, placeOf } from "../../shared/document";
import { twoWays, typedNumber } from "../../shared/numbers";
import type { DocElement, PipelineDocument } from "../../shared/types";
import { besideOffset, CARD } from "../places";
import { changeElement, freshId } from "../edits";
import { stable } from "../merge";

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
  /** as it was typed: how long a reading stays above the limit before the alarm is raised, s */
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
    for_s: "30",
    node: "",
    wall: true,
  };
}

/** As the operator allows it, s. */
const FOR_S_MAX = 7 * 86_400;

/** Why it cannot be made yet; null when it can. */
export function faultOf({ column, above, for_s }: Wish): string | null {
  if (!column) return "The file has no column of numbers.";
  if (above.trim() === "") return null;
  if (Number.isNaN(typedNumber(above))) return twoWays(above) ?? "The limit is a number, or empty.";
  const seconds = typedNumber(for_s);
  if (Number.isNaN(seconds)) return twoWays(for_s) ?? "The time above the limit is a number of seconds.";
  if (seconds <= 0)
    return "Type how long a reading stays above the limit, such as 30 s. With 0 s, readings around the limit would raise and clear the alarm all the time.";
  return seconds > FOR_S_MAX ? `The time above the limit is at most ${FOR_S_MAX} s, which is 7 days.` : null;
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

type Part = Pick<DocElement, "type"> & { title: string; params: Record<string, unknown> };

/** The elements that compute what is wished for; `alarm`: null when none is wished for. */
function partsOf(wish: Wish): { average: Part; alarm: Part | null } {
  const average = {
    type: "window-aggregate",
    title: `Average ${wish.column}${wish.by ? `, each ${wish.by}` : ""}`,
    params: {
      size_s: wish.size_s,
      keys: wish.by ? [wish.by] : [],
      aggregates: [{ function: "avg", column: wish.column, as: averageName(wish) }],
    },
  };
  const limit = typedNumber(wish.above);
  if (Number.isNaN(limit)) return { average, alarm: null };
  const params = {
    column: wish.column,
    direction: "above",
    raise_at: limit,
    clear_at: limit,
    for_s: typedNumber(wish.for_s),
    ...(wish.by ? { key: wish.by } : {}),
  };
  // no figure in the title: the limit may be changed later
  return { average, alarm: { type: "hysteresis-alarm", title: `${wish.column} too high`, params } };
}

/** The element that reads `source` and computes the same already. */
const sameAs = (document: PipelineDocument, source: string, part: Part): DocElement | undefined =>
  elementsOf(document).find(
    ({ type, inputs, params }) =>
      type === part.type && inputs?.in === source && stable(params) === stable(part.params),
  );

/** What of the wish is drawn already, in words; null: nothing. `all`: nothing is left to draw. */
export function drawnAlready(
  document: PipelineDocument,
  source: string,
  wish: Wish,
): { words: string; all: boolean } | null {
  const { average, alarm } = partsOf(wish);
  const there = [average, ...(alarm ? [alarm] : [])].flatMap((part) => sameAs(document, source, part) ?? []);
  if (there.length === 0) return null;
  const names = there.map(({ title, id }) => `“${title ?? id}”`).join(" and ");
  const all = there.length === (alarm ? 2 : 1);
  return { words: `${names} ${there.length > 1 ? "are" : "is"} drawn already.`, all };
}

/**
 * The document with the elements that fulfil the wish, behind the source `source`. What is drawn already is not
 * drawn again, and no new card lies over another one.
 */
export function made(document: PipelineDocument, source: string, wish: Wish): Made {
  const taken = elementsOf(document).map(({ id }) => id);
  const from = findElement(document, source);
  const at = (from && placeOf(from)) ?? { x: 0, y: 0 };
  const added: (DocElement & { ui: { x: number; y: number } })[] = [];
  const place = wish.node ? { node: wish.node } : {};
  const add = ({ type, title, params }: Part, from: string, column: number, row: number): string => {
    const id = freshId([...taken, ...added.map((each) => each.id)], type);
    const ui = { x: at.x + column * RIGHT, y: at.y + row * DOWN };
    const runs = !type.startsWith("live-");
    added.push({ id, type, title, params, inputs: { in: from }, ui, ...(runs ? place : {}) });
    return id;
  };
  const parts = partsOf(wish);
  let average = sameAs(document, source, parts.average)?.id;
  const isNew = average === undefined;
  average ??= add(parts.average, source, 1, 0);
  let alarm = (parts.alarm && sameAs(document, source, parts.alarm)?.id) ?? null;
  if (parts.alarm && !alarm) {
    alarm = add(parts.alarm, source, 1, 1);
    add({ type: "live-table", title: "Alarms", params: { rows: 50 } }, alarm, 2, 1);
  }
  if (isNew) {
    const params = {
      columns: [averageName(wish)],
      window_s: 60 * wish.size_s,
      ...(wish.by ? { by: wish.by } : {}),
      ...(alarm ? { limit_of: alarm } : {}),
    };
    add({ type: "live-chart", title: `Chart of ${wish.column}`, params }, average, 2, 0);
  }
  const pinned = wish.node ? changeElement(document, source, place) : document;
  const others = elementsOf(document).flatMap((each) => placeOf(each) ?? []);
  const cards = added.map(({ ui }) => ui);
  const by = cards.length > 0 ? besideOffset(others, cards) : { x: 0, y: 0 };
  const elements = [
    ...elementsOf(pinned),
    ...added.map((each) => ({ ...each, ui: { x: each.ui.x + by.x, y: each.ui.y + by.y } })),
  ];
  return { document: { ...pinned, spec: { ...pinned.spec, elements } }, average, alarm };
}
