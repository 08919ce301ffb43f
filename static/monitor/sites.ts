/** The map's sites and lines as the page shows them, and where they are drawn. Pure. */
import { bytes, latency } from "../shared/format";
import type { ClusterNode, MapLink, SiteMap } from "../shared/types";

export interface Site {
  name: string;
  /** false for a node without a site */
  named: boolean;
  nodes: ClusterNode[];
  sources: SiteMap["sites"][number]["sources"];
}

/** By name. The nodes are the live ones; what they read from outside is as the map says. */
export function sitesOf(nodes: ClusterNode[], map: SiteMap): Site[] {
  const sources = map.sites.flatMap((site) => site.sources);
  const found = new Map<string, Site>();
  for (const node of nodes) {
    const name = node.site || node.name;
    const site = found.get(name) ?? { name, named: false, nodes: [], sources: [] };
    site.named ||= node.site !== "";
    site.nodes.push(node);
    site.sources.push(...sources.filter((source) => source.node === node.name));
    found.set(name, site);
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The line between two sites, both ways; a way is null when nothing is known about it. */
export interface Line {
  a: string;
  b: string;
  there: MapLink | null;
  back: MapLink | null;
}

/** One line for each two sites about which something is known. */
export function linesOf(names: string[], links: MapLink[]): Line[] {
  const way = new Map(links.map((link) => [`${link.a}\n${link.b}`, link]));
  const found: Line[] = [];
  names.forEach((a, index) => {
    for (const b of names.slice(index + 1)) {
      const there = way.get(`${a}\n${b}`) ?? null;
      const back = way.get(`${b}\n${a}`) ?? null;
      if (there || back) found.push({ a, b, there, back });
    }
  });
  return found;
}

export const brokenSince = (line: Line): string | null =>
  line.there?.unreachable_since ?? line.back?.unreachable_since ?? null;

/** "10 ms", or "10 / 12 ms" where the two ways differ; what is not known is left out. */
export function latencyWords(line: Line): string {
  const ways = [line.there?.latency_ms, line.back?.latency_ms].filter((ms) => ms != null).map(latency);
  const [first, second] = ways;
  if (first === undefined) return "";
  return second === undefined || second === first ? first : `${first.replace(" ms", "")} / ${second}`;
}

/** The slower of the two ways, which is what one can count on. */
export function slowest(line: Line): number | null {
  const known = [line.there?.bytes_per_s, line.back?.bytes_per_s].filter((rate) => rate != null);
  return known.length ? Math.min(...known) : null;
}

export const rateWords = (bytesPerS: number | null | undefined): string =>
  bytesPerS == null ? "" : `${bytes(bytesPerS)}/s`;

/** A line's width in pixels: 1.5 up to 10 KB/s or where the rate is not known, 2 more for each 100 times. */
export function widthOf(bytesPerS: number | null): number {
  if (bytesPerS === null || bytesPerS <= 1e4) return 1.5;
  return Math.min(7.5, 1.5 + Math.log10(bytesPerS / 1e4));
}

export interface Point {
  x: number;
  y: number;
}

/** Room beside the outermost sites for their names, and above and below them, in pixels. */
const BESIDE = 74;
const ABOVE = 44;

/** Places on an ellipse, the first at the top; two lie side by side. The same sites lie at the same places. */
export function placesOf(count: number, width: number, height: number): Point[] {
  const start = count === 2 ? Math.PI : -Math.PI / 2;
  return Array.from({ length: count }, (_, index) => {
    const angle = start + (index * 2 * Math.PI) / count;
    return {
      x: Math.round(width / 2 + Math.cos(angle) * Math.max(0, width / 2 - BESIDE)),
      y: Math.round(height / 2 + Math.sin(angle) * Math.max(0, height / 2 - ABOVE)),
    };
  });
}

/** Whether there is room for the words of each line; else those of one site's lines have it. */
export const wordsFit = (count: number, width: number): boolean => count <= 3 || (count <= 5 && width >= 640);

/** Where a line's words stand, of sites `from` and `to` by number: lines across cross each other further in. */
export function wordsAt(places: Point[], from: number, to: number): Point {
  const [start, end] = [places[from] ?? { x: 0, y: 0 }, places[to] ?? { x: 0, y: 0 }];
  const apart = Math.abs(from - to);
  const part = apart === 1 || apart === places.length - 1 ? 0.5 : 0.22;
  return { x: start.x + (end.x - start.x) * part, y: start.y + (end.y - start.y) * part };
}

/** The same where one site's lines alone have words: near their other ends, where they lie apart. */
export function wordsFrom(places: Point[], chosen: number, other: number): Point {
  const [start, end] = [places[chosen] ?? { x: 0, y: 0 }, places[other] ?? { x: 0, y: 0 }];
  return { x: start.x + (end.x - start.x) * 0.6, y: start.y + (end.y - start.y) * 0.6 };
}

const NAME_MAX = 18;
export const shortName = (name: string): string =>
  name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name;
