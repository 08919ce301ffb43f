import { describe, expect, test } from "vitest";
import { elementsOf, findElement, groupsOf } from "../document";
import { CARD } from "../places";
import { siteWord, spread, spreadRefusal } from "../near-sources";
import { DOCUMENT, OPERATORS } from "./fixtures";

const LOCAL = ["readings", "big"];

/** As drawn: what reads a topic of each site, and a file of all. */
const DRAWN = {
  ...DOCUMENT,
  spec: {
    ...DOCUMENT.spec,
    elements: elementsOf(DOCUMENT).map((each) =>
      each.id === "readings" ? { ...each, params: { path: "demo:{site}.csv" }, node: "edge-a" } : each,
    ),
  },
};

const at = (sites: string[], document = DRAWN, ids = LOCAL) => spread(document, OPERATORS, ids, sites);
const element = (document: typeof DRAWN, id: string) => findElement(document, id)!;

describe("copies at several sites", () => {
  const { document, ids } = at(["Hall 1", "yard"]);

  test("each says its site, and reads within it", () => {
    expect(ids).toEqual(["readings", "readings-yard", "big", "big-yard"]);
    expect(element(document, "readings")).toMatchObject({
      title: "readings, Hall 1",
      site: "Hall 1",
      params: { path: "demo:hall-1.csv" },
    });
    expect(element(document, "readings")).not.toHaveProperty("node");
    expect(element(document, "readings-yard")).toMatchObject({
      site: "yard",
      params: { path: "demo:yard.csv" },
    });
    expect(element(document, "big").inputs).toEqual({ in: "readings" });
    expect(element(document, "big-yard").inputs).toEqual({ in: "readings-yard" });
    expect(groupsOf(document)).toEqual([
      { id: "edge-part", elements: ["readings", "big"] },
      { id: "edge-part-yard", elements: ["readings-yard", "big-yard"] },
    ]);
  });

  test("who reads them from outside reads all of them", () => {
    expect(element(document, "file").inputs).toEqual({ in: "big-all" });
    expect(element(document, "big-all")).toMatchObject({
      type: "merge",
      title: "big, all sites",
      inputs: { in1: "big", in2: "big-yard" },
    });
  });

  test("what joins them stands in front of its reader, which makes room", () => {
    const [copy, merge, reader] = ["big", "big-all", "file"].map((id) => element(document, id).ui!);
    expect(copy!.x + CARD.width).toBeLessThan(merge!.x);
    expect(merge!.x + CARD.width).toBeLessThan(reader!.x);
  });

  test("no card lies on another", () => {
    const cards = elementsOf(document).map(({ ui }) => ui!);
    for (const [index, a] of cards.entries())
      for (const b of cards.slice(index + 1))
        expect(Math.abs(a.x - b.x) >= CARD.width || Math.abs(a.y - b.y) >= CARD.height).toBe(true);
  });

  test("a site that comes later gets its copy, and the same merge reads it", () => {
    const later = at(["barn"], document).document;
    expect(element(later, "readings-barn")).toMatchObject({
      title: "readings, barn",
      site: "barn",
      params: { path: "demo:barn.csv" },
    });
    expect(element(later, "readings")).toEqual(element(document, "readings"));
    expect(element(later, "big-all").inputs).toEqual({ in1: "big", in2: "big-yard", in3: "big-barn" });
    expect(element(later, "file").inputs).toEqual({ in: "big-all" });
  });
});

test("more streams than a merge has inputs are merged in two steps, each once", () => {
  const { document } = at(["a", "b", "c", "d", "e", "f"]);
  const seen: string[] = [];
  const follow = (stream: string) => {
    const each = element(document, stream);
    if (each.type === "merge") Object.values(each.inputs ?? {}).forEach(follow);
    else seen.push(stream);
  };
  follow(element(document, "file").inputs!.in!);
  expect(seen.sort()).toEqual(["big", "big-b", "big-c", "big-d", "big-e", "big-f"]);
});

test("two that read the same stream share what joins it", () => {
  const more = { ...DRAWN, spec: { ...DRAWN.spec, elements: [...elementsOf(DRAWN)] } };
  more.spec.elements.push({ id: "again", type: "csv-sink", inputs: { in: "big" } });
  const { document } = at(["a", "b"], more);
  expect(elementsOf(document).filter((each) => each.type === "merge")).toHaveLength(1);
  expect(element(document, "again").inputs).toEqual(element(document, "file").inputs);
});

test("what runs as one is copied as one, and what stands at several sites is not copied", () => {
  expect(spreadRefusal(DRAWN, OPERATORS, ["big"])).toBe("big runs as one with readings: select that, too.");
  expect(at(["a", "b"], DRAWN, ["big"]).document).toBe(DRAWN);
  const { document } = at(["a", "b"]);
  const all = elementsOf(document).map(({ id }) => id);
  expect(spreadRefusal(document, OPERATORS, all)).toBe("They stand at several sites already: a, b.");
  expect(spreadRefusal(document, OPERATORS, LOCAL)).toBeNull();
});

test("a site's name becomes a word of topics and ids", () => {
  expect(["Hall 1", "Küche / Süd", "…"].map(siteWord)).toEqual(["hall-1", "k-che-s-d", "site"]);
});
