/**
 * Copies of elements at several sites, each near its part of the sources, and what joins them. Pure.
 *
 * As SpanEdge has it (H. P. Sajjad et al., SEC 2016, doi:10.1109/SEC.2016.17): what is local has a copy at each
 * site; copies of one site are connected with each other, and who reads them and is not local reads them all.
 */
import {
  copyOf,
  displayName,
  elementsOf,
  findElement,
  formatReference,
  freshId,
  groupsOf,
  parseReference,
} from "./document";
import { CARD, besideOffset, freePlace, type Point } from "./places";
import type { DocElement, DocGroup, Operator, PipelineDocument } from "../shared/types";

/** In a text parameter it stands for the site: a topic "readings-{site}". */
export const SITE_MARK = "{site}";
const MERGE = "merge";
const MERGE_PORTS = ["in1", "in2", "in3", "in4"];
const GAP = 80;

/** How a site is written in parameters and ids: "Hall 1" is hall-1. */
export const siteWord = (site: string): string =>
  site
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "") || "site";

/** Why these elements cannot have copies at sites; null: they can. */
export function spreadRefusal(
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
  ids: readonly string[],
): string | null {
  const nameOf = (id: string) => {
    const element = findElement(document, id);
    return element ? displayName(element, operators.get(element.type)) : id;
  };
  const chosen = new Set(ids);
  for (const group of groupsOf(document)) {
    const left = group.elements.filter((id) => !chosen.has(id));
    const inside = group.elements.find((id) => chosen.has(id));
    if (inside && left[0]) return `${nameOf(inside)} runs as one with ${nameOf(left[0])}: select that, too.`;
  }
  const sites = new Set(elementsOf(document).flatMap((each) => (chosen.has(each.id) && each.site) || []));
  if (sites.size > 1) return `They stand at several sites already: ${[...sites].sort().join(", ")}.`;
  return null;
}

/** The site at which these stand; null: at none yet. */
export const siteOf = (document: PipelineDocument, ids: readonly string[]): string | null =>
  elementsOf(document).find((each) => ids.includes(each.id) && each.site)?.site ?? null;

/**
 * The elements at their own site, or at the first of `sites` where they have none, and a copy of them at each of
 * the others. Parameters name the site of each; streams among the elements stay within a site; who reads them from
 * outside reads all of them, merged. `ids`: also those of the copies.
 */
export function spread(
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
  ids: readonly string[],
  sites: readonly string[],
): { document: PipelineDocument; ids: string[] } {
  const stood = siteOf(document, ids);
  const own = stood ?? sites[0];
  if (!own || spreadRefusal(document, operators, ids) !== null) return { document, ids: [...ids] };
  const chosen = new Set(ids);
  const originals = elementsOf(document).filter((each) => chosen.has(each.id));
  const mark = stood === null ? SITE_MARK : siteWord(own);
  const standing = originals.map((each) => at(each, own, mark, operators));
  let all = elementsOf(document).map((each) => standing.find(({ id }) => id === each.id) ?? each);
  let groups = groupsOf(document);
  const copies = new Map(originals.map(({ id }) => [id, [id]]));
  for (const site of sites.filter((each) => each !== own)) {
    const taken = [...all.map(({ id }) => id), ...groups.map(({ id }) => id)];
    const names = namesAt(site, originals, taken);
    const offset = besideOffset(placesOf(all), placesOf(standing));
    const there = originals.map((each) => copyOf(at(each, site, mark, operators), names, offset));
    groups = [...groups, ...groupsAt(groups, site, names, [...taken, ...names.values()])];
    all = [...all, ...there];
    for (const [id, name] of names) copies.get(id)?.push(name);
  }
  const merged = readAll(all, operators, copies);
  const { groups: _, ...spec } = document.spec;
  const next = { ...spec, elements: merged, ...(groups.length ? { groups } : {}) };
  return { document: { ...document, spec: next }, ids: [...copies.values()].flat() };
}

const placesOf = (elements: readonly DocElement[]): Point[] => elements.flatMap((each) => each.ui ?? []);

/** At that site: its title, its place, and what its parameters say of the site, which now is `mark`. */
function at(
  element: DocElement,
  site: string,
  mark: string,
  operators: ReadonlyMap<string, Operator>,
): DocElement {
  const { node: _, ...rest } = element;
  const name = displayName(element, operators.get(element.type));
  const ending = element.site ? `, ${element.site}` : "";
  const title = `${ending && name.endsWith(ending) ? name.slice(0, -ending.length) : name}, ${site}`;
  return {
    ...rest,
    title,
    site,
    params: withSite(element.params ?? {}, mark, siteWord(site)) as DocElement["params"],
  };
}

/** Each text with `word` in the place of `mark`, where that stands for itself. */
function withSite(value: unknown, mark: string, word: string): unknown {
  if (typeof value === "string") {
    if (mark === SITE_MARK) return value.split(mark).join(word);
    const alone = new RegExp(`(?<![A-Za-z0-9])${mark}(?![A-Za-z0-9])`, "g");
    return value.replace(alone, word);
  }
  if (Array.isArray(value)) return value.map((each) => withSite(each, mark, word));
  if (value !== null && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withSite(each, mark, word)]));
  return value;
}

function namesAt(
  site: string,
  originals: readonly DocElement[],
  taken: readonly string[],
): Map<string, string> {
  const names = new Map<string, string>();
  for (const { id, site: before } of originals) {
    const ending = before ? `-${siteWord(before)}` : "";
    const base = ending && id.endsWith(ending) ? id.slice(0, -ending.length) : id;
    names.set(id, freshId([...taken, ...names.values()], `${base}-${siteWord(site)}`));
  }
  return names;
}

function groupsAt(
  groups: readonly DocGroup[],
  site: string,
  names: ReadonlyMap<string, string>,
  taken: readonly string[],
): DocGroup[] {
  const used = [...taken];
  return groups
    .filter((group) => group.elements.every((id) => names.has(id)))
    .map((group) => {
      const id = freshId(used, `${group.id}-${siteWord(site)}`);
      used.push(id);
      const title = group.title ? { title: `${group.title}, ${site}` } : {};
      return { ...group, ...title, id, elements: group.elements.map((each) => names.get(each) ?? each) };
    });
}

/** Each reader that is none of the copies reads all of them: by a merge of its own, or with the one that it is. */
function readAll(
  elements: readonly DocElement[],
  operators: ReadonlyMap<string, Operator>,
  copies: ReadonlyMap<string, readonly string[]>,
): DocElement[] {
  const inside = new Set([...copies.values()].flat());
  const others = (reference: string) => {
    const from = parseReference(reference);
    const ids = (copies.get(from.element) ?? []).filter((id) => id !== from.element);
    return ids.map((element) => formatReference({ ...from, element }));
  };
  const freePorts = ({ type, inputs }: DocElement) =>
    type === MERGE ? MERGE_PORTS.filter((port) => !(port in (inputs ?? {}))) : [];
  const readers = elements.filter((each) => {
    const more = Object.values(each.inputs ?? {}).flatMap(others);
    return !inside.has(each.id) && more.length > freePorts(each).length;
  });
  const placed = movedOn(elements, inside, readers);
  const { made, merge } = merging(placed);
  const joined = new Map<string, string>(); // stream -> the merge that has all of it
  const nameOfAll = (reference: string): string => {
    const id = parseReference(reference).element;
    const original = elements.find((each) => each.id === id);
    const name = original ? displayName(original, operators.get(original.type)) : id;
    return `${original?.site ? name.replace(`, ${original.site}`, "") : name}, all sites`;
  };
  const read = (reader: DocElement): DocElement => {
    let inputs = reader.inputs ?? {};
    for (const [port, reference] of Object.entries(inputs)) {
      const streams = others(reference);
      if (streams.length === 0) continue;
      const free = freePorts({ ...reader, inputs });
      if (free.length >= streams.length) {
        const more = streams.map((stream, index) => [free[index] as string, stream]);
        inputs = { ...inputs, ...(Object.fromEntries(more) as Record<string, string>) };
        continue;
      }
      const id = joined.get(reference) ?? merge([reference, ...streams], nameOfAll(reference), reader);
      joined.set(reference, id);
      inputs = { ...inputs, [port]: id };
    }
    return inputs === reader.inputs || !reader.inputs ? reader : { ...reader, inputs };
  };
  const all = placed.map((each) => (inside.has(each.id) ? each : read(each)));
  return [...all, ...made];
}

/** What stands no farther left than the first of `readers` makes room for a merge in front of that. */
function movedOn(
  elements: readonly DocElement[],
  inside: ReadonlySet<string>,
  readers: readonly DocElement[],
): DocElement[] {
  const from = Math.min(...readers.map(({ ui }) => ui?.x ?? 0));
  return elements.map((each) =>
    inside.has(each.id) || (each.ui?.x ?? 0) < from
      ? each
      : { ...each, ui: { ...each.ui, x: (each.ui?.x ?? 0) + CARD.width + GAP, y: each.ui?.y ?? 0 } },
  );
}

/** Makes merges, of more streams than one has inputs in several steps: each stands where its reader stood. */
function merging(elements: readonly DocElement[]) {
  const made: DocElement[] = [];
  const merge = (streams: readonly string[], title: string, reader: DocElement): string => {
    const rest = streams.length > MERGE_PORTS.length ? [merge(streams.slice(3), title, reader)] : [];
    const inputs = [...streams.slice(0, rest.length ? 3 : MERGE_PORTS.length), ...rest];
    const taken = [...elements, ...made];
    const first = parseReference(streams[0] as string).element;
    const id = freshId(
      taken.map((each) => each.id),
      `${first}-all`,
    );
    const place = { x: (reader.ui?.x ?? 0) - CARD.width - GAP, y: reader.ui?.y ?? 0 };
    made.push({
      id,
      type: MERGE,
      title,
      inputs: Object.fromEntries(inputs.map((stream, index) => [MERGE_PORTS[index] as string, stream])),
      ui: freePlace(placesOf(taken), place),
    });
    return id;
  };
  return { made, merge };
}
