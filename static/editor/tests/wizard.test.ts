import { expect, test } from "vitest";
import { elementsOf, findElement, placeOf } from "../../shared/document";
import { DOCUMENT } from "../../shared/tests/documents";
import { freeTitle, tilesOf } from "../wizard/wall";
import { drawnAlready, faultOf, firstWish, made, type Column } from "../wizard/wish";

const COLUMNS: Column[] = [
  { name: "Zeit", type: "timestamp", unit: null },
  { name: "Nr", type: "integer", unit: null },
  { name: "Maschine", type: "string", unit: null },
  { name: "Temperatur", type: "number", unit: "°C" },
];
const WISH = { ...firstWish(COLUMNS), above: "80", for_s: "30", node: "edge-b" };

test("a number with a unit, for each text, in a minute is offered first", () => {
  expect(firstWish(COLUMNS)).toMatchObject({ column: "Temperatur", by: "Maschine", size_s: 60 });
  expect(firstWish([])).toMatchObject({ column: "", by: "" });
});

test("what cannot be made is said, and a limit may have a comma", () => {
  expect(faultOf(WISH)).toBeNull();
  expect(faultOf({ ...WISH, above: "80,5" })).toBeNull();
  expect(faultOf({ ...WISH, above: "eighty" })).toBe("The limit is a number, or empty.");
  expect(faultOf({ ...WISH, above: "1,500" })).toContain("type 1.500 or 1500");
  expect(faultOf({ ...WISH, for_s: "soon" })).toContain("number of seconds");
  expect(faultOf({ ...WISH, for_s: "0" })).toContain("such as 30 s");
  expect(faultOf({ ...WISH, for_s: "604801" })).toContain("at most 604800 s");
  expect(faultOf({ ...WISH, above: "", for_s: "" })).toBeNull();
  expect(faultOf({ ...WISH, column: "" })).toContain("no column of numbers");
});

test("averages and alarms are drawn behind the file, on the node", () => {
  const { document, average, alarm } = made(DOCUMENT, "readings", WISH);
  expect(findElement(document, "readings")?.node).toBe("edge-b");
  expect(findElement(document, average)).toMatchObject({
    node: "edge-b",
    inputs: { in: "readings" },
    params: {
      size_s: 60,
      keys: ["Maschine"],
      aggregates: [{ function: "avg", column: "Temperatur", as: "Temperatur_average" }],
    },
  });
  expect(findElement(document, alarm ?? "")?.title).toBe("Temperatur too high");
  expect(findElement(document, alarm ?? "")?.params).toEqual({
    column: "Temperatur",
    direction: "above",
    raise_at: 80,
    clear_at: 80,
    for_s: 30,
    key: "Maschine",
  });
  const views = document.spec?.elements?.filter(({ type }) => type.startsWith("live-")) ?? [];
  expect(views.every((view) => view.node === undefined)).toBe(true);
  // the line of the chart is the alarm's limit, also when that is changed later
  expect(views.find(({ type }) => type === "live-chart")?.params).toMatchObject({ limit_of: alarm });
});

test("without a limit there is no alarm, and without a node no pin", () => {
  const { document, average, alarm } = made(DOCUMENT, "readings", { ...WISH, above: "", node: "" });
  expect(alarm).toBeNull();
  expect(findElement(document, average)?.node).toBeUndefined();
});

test("what is drawn already is said and not drawn again, and nothing lies over another card", () => {
  const first = made(DOCUMENT, "readings", WISH);
  expect(drawnAlready(DOCUMENT, "readings", WISH)).toBeNull();
  expect(drawnAlready(first.document, "readings", WISH)).toEqual({
    words: "“Average Temperatur, each Maschine” and “Temperatur too high” are drawn already.",
    all: true,
  });
  const higher = { ...WISH, above: "90" };
  expect(drawnAlready(first.document, "readings", higher)?.all).toBe(false);
  const second = made(first.document, "readings", higher);
  expect(second.average).toBe(first.average);
  expect(second.alarm).not.toBe(first.alarm);
  const before = elementsOf(first.document);
  const cards = elementsOf(second.document).slice(before.length);
  expect(cards.map(({ type }) => type)).toEqual(["hysteresis-alarm", "live-table"]);
  const places = before.map((each) => placeOf(each));
  for (const card of cards) expect(places).not.toContainEqual(placeOf(card));
});

test("the wall has the averages, the alarms and the pipeline, no two over each other", () => {
  const tiles = tilesOf("press", WISH, made(DOCUMENT, "readings", WISH));
  expect(tiles.map(({ kind }) => kind)).toEqual(["chart", "table", "picture"]);
  // titles and the limit are those of the elements, also when they are changed later
  expect(tiles.map(({ title }) => title ?? "")).toEqual(["", "", ""]);
  expect(tiles[0]).toMatchObject({ limit_of: { pipeline: "press", element: "hysteresis-alarm" } });
  expect(tiles.slice(0, 2).map(({ x, w }) => [x, w])).toEqual([
    [0, 12],
    [12, 12],
  ]);
  expect(new Set(tiles.map(({ id }) => id)).size).toBe(3);
  expect(new Set(tiles.map(({ x, y }) => `${x} ${y}`)).size).toBe(3);
  expect(freeTitle("Halle", [{ title: "halle" }, { title: "Halle 2" }])).toBe("Halle 3");
});
