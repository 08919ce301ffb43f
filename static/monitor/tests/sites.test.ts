import { expect, test } from "vitest";
import { node } from "../../shared/tests/fixtures";
import type { MapLink, SiteMap } from "../../shared/types";
import { matrixText } from "../given-matrix";
import {
  brokenSince,
  latencyWords,
  linesOf,
  placesOf,
  shortName,
  sitesOf,
  slowest,
  widthOf,
  wordsAt,
  wordsFit,
  wordsFrom,
} from "../sites";

const link = (a: string, b: string, change: Partial<MapLink> = {}): MapLink => ({
  a,
  b,
  latency_ms: 10,
  bytes_per_s: 3e6,
  source: "measured",
  rate_given: false,
  measured_at: null,
  unreachable_since: null,
  ...change,
});

const source = (node: string) => ({ pipeline: "p", element: "e", title: "E", node });
const NO_MATRIX = { sites: [], rows: [], unknown: [] };

test("sites are where the live nodes stand, each with what its nodes read", () => {
  const map: SiteMap = {
    sites: [{ name: "before", named: true, nodes: [], sources: [source("edge-b"), source("gone")] }],
    broker: [],
    given_rates: NO_MATRIX,
    links: [],
    given: NO_MATRIX,
  };
  const sites = sitesOf(
    [node("edge-a", { site: "hall" }), node("cloud"), node("edge-b", { site: "hall" })],
    map,
  );
  expect(sites.map((site) => [site.name, site.named, site.nodes.length, site.sources.length])).toEqual([
    ["cloud", false, 1, 0],
    ["hall", true, 2, 1],
  ]);
});

test("two sites have one line, whichever way is known, and none where nothing is", () => {
  const lines = linesOf(["a", "b", "c"], [link("b", "a"), link("a", "gone")]);
  expect(lines).toEqual([{ a: "a", b: "b", there: null, back: link("b", "a") }]);
});

test("a line says both ways where they differ, and the slower rate", () => {
  const [line] = linesOf(
    ["a", "b"],
    [link("a", "b", { bytes_per_s: 5e6 }), link("b", "a", { latency_ms: 12.4, bytes_per_s: 2e6 })],
  );
  if (!line) throw new Error("no line");
  expect(latencyWords(line)).toBe("10 / 12 ms");
  expect(slowest(line)).toBe(2e6);
  expect(latencyWords({ ...line, back: link("b", "a") })).toBe("10 ms");
  const broken = link("a", "b", { latency_ms: null, bytes_per_s: null, unreachable_since: "2026-01-01" });
  expect(latencyWords({ a: "a", b: "b", there: broken, back: null })).toBe("");
  expect(slowest({ a: "a", b: "b", there: broken, back: null })).toBeNull();
  expect(brokenSince({ a: "a", b: "b", there: null, back: broken })).toBe("2026-01-01");
});

test("a line is the thicker the more it bears, within bounds", () => {
  const widths = [null, 0, 1e4, 1e5, 1e6, 1e8, 1e12].map(widthOf);
  expect(widths).toEqual([...widths].sort((one, other) => one - other));
  expect([widths[0], widths.at(-1)]).toEqual([1.5, 7.5]);
});

test.each([
  [1, 340],
  [2, 340],
  [3, 340],
  [9, 1200],
])("%i sites lie within %i pixels, each at a place of its own, and always at the same", (count, width) => {
  const places = placesOf(count, width, 300);
  expect(new Set(places.map(({ x, y }) => `${x} ${y}`)).size).toBe(count);
  expect(places.every(({ x, y }) => x >= 74 && x <= width - 74 && y >= 44 && y <= 256)).toBe(true);
  expect(placesOf(count, width, 300)).toEqual(places);
});

test.each([2, 3, 4, 5])("the words of the lines between %i sites lie apart from each other", (count) => {
  const places = placesOf(count, 1100, 460);
  const words = places.flatMap((_, from) =>
    places.flatMap((_, to) => (from < to ? [wordsAt(places, from, to)] : [])),
  );
  for (const [index, one] of words.entries())
    for (const other of words.slice(index + 1))
      expect(Math.abs(one.x - other.x) > 70 || Math.abs(one.y - other.y) > 30).toBe(true);
});

test("where there is no room for all words, those of one site's lines lie apart", () => {
  expect([wordsFit(3, 340), wordsFit(4, 340), wordsFit(5, 1100), wordsFit(6, 1100)]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  const places = placesOf(8, 1100, 460);
  const words = places.slice(1).map((_, index) => wordsFrom(places, 0, index + 1));
  expect(new Set(words.map(({ x, y }) => `${Math.round(x / 70)} ${Math.round(y / 30)}`)).size).toBe(7);
});

test("a long name is cut, and a matrix is written as it was read", () => {
  expect(shortName("x".repeat(40))).toHaveLength(18);
  expect(shortName("Data centre 1")).toBe("Data centre 1");
  expect(matrixText({ sites: ["a", "b"], rows: [[0, 1.5], [2, 0]], unknown: [] })).toBe("a,b\n0,1.5\n2,0"); // prettier-ignore
  expect(matrixText(NO_MATRIX)).toBe("");
});
