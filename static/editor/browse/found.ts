/** What was found in a system, and what of it is shown and ticked. Pure. */
import { plural } from "../../shared/format";
import type { FoundThing } from "../../shared/types";

/** What lies at one place of a system. */
export interface Branch {
  state: "asking" | "there" | "refused";
  /** what was found, or why nothing was, in the words of the node */
  words: string;
  things: FoundThing[];
}

/** By the path that was looked into. */
export type Branches = Readonly<Record<string, Branch>>;

/** The path of the whole system. */
export const WHOLE = "";

const has = ({ title, within }: FoundThing, find: string): boolean =>
  [title, ...within].some((each) => each.toLowerCase().includes(find.trim().toLowerCase()));

/** The paths of what a thing lies in. A system may have loops: a thing that lies in itself is not opened again. */
export type Above = readonly string[];

/** The things at a place that have `find` in their name, or among what was looked into below them. */
export function matching(branches: Branches, path: string, find: string, above: Above = []): FoundThing[] {
  const things = branches[path]?.things ?? [];
  const inside = [...above, path];
  const isBelow = (each: FoundThing) =>
    !inside.includes(each.path) && matching(branches, each.path, find, inside).length > 0;
  return things.filter((each) => has(each, find) || isBelow(each));
}

/** All that may be ticked and is shown at a place and, where it is opened, below it. */
export function usable(
  branches: Branches,
  path: string,
  find: string,
  open: ReadonlySet<string>,
  above: Above = [],
): FoundThing[] {
  const inside = [...above, path];
  return matching(branches, path, find, above).flatMap((each) => [
    ...(each.usable ? [each] : []),
    ...(open.has(each.path) && !inside.includes(each.path)
      ? usable(branches, each.path, below(each, find), open, inside)
      : []),
  ]);
}

/** What is looked for below a thing: where its own name has it, all is shown. */
export const below = (thing: FoundThing, find: string): string => (has(thing, find) ? "" : find);

/** "Double, °C", or "JSON object, 3 fields". */
export function kindWords({ type, unit, parts }: FoundThing): string {
  const inside = parts.length > 0 ? plural(parts.length, type ? "field" : "column") : "";
  return [type, unit, inside].filter(Boolean).join(", ");
}

export const valueWords = ({ value }: FoundThing): string => (value === null ? "" : String(value));

/** The branch of an answer. Where things lie is known from where they were looked for. */
export function branchOf(
  answer: { works: boolean; words: string; found: FoundThing[] },
  within: readonly string[],
): Branch {
  return {
    state: answer.works ? "there" : "refused",
    words: answer.words,
    things: answer.found.map((each) => (each.within.length > 0 ? each : { ...each, within: [...within] })),
  };
}

/** Where a look into the system of an element begins. */
export function startOf(
  operator: { browsed_from: string },
  element: { params?: Record<string, unknown> },
): string {
  const said = operator.browsed_from && element.params?.[operator.browsed_from];
  return typeof said === "string" ? said : WHOLE;
}

/** The node that will use the connection, as far as that is known; else any that is up. */
export function nodeFor(
  nodes: readonly { name: string; site: string; up: boolean }[],
  place: { node?: string | null; site?: string | null },
  runsOn: string | null | undefined,
): string {
  const up = nodes.filter((each) => each.up);
  const named = [place.node, runsOn].find((name) => up.some((each) => each.name === name));
  return named ?? up.find(({ site }) => site === place.site)?.name ?? up[0]?.name ?? "";
}
