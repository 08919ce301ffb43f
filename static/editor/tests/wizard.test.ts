import { expect, test } from "vitest";
import { findElement } from "../../shared/document";
import { DOCUMENT } from "../../shared/tests/documents";
import { freeTitle, tilesOf } from "../wizard/wall";
import { faultOf, firstWish, made, type Column } from "../wizard/wish";

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
  expect(faultOf({ ...WISH, for_s: "-1" })).toContain("number of seconds");
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
});

test("without a limit there is no alarm, and without a node no pin", () => {
  const { document, average, alarm } = made(DOCUMENT, "readings", { ...WISH, above: "", node: "" });
  expect(alarm).toBeNull();
  expect(findElement(document, average)?.node).toBeUndefined();
});

test("the wall has the averages, the alarms and the pipeline, no two over each other", () => {
  const tiles = tilesOf("press", WISH, made(DOCUMENT, "readings", WISH));
  expect(tiles.map(({ kind }) => kind)).toEqual(["chart", "table", "picture"]);
  expect(new Set(tiles.map(({ id }) => id)).size).toBe(3);
  expect(new Set(tiles.map(({ x, y }) => `${x} ${y}`)).size).toBe(3);
  expect(freeTitle("Halle", [{ title: "halle" }, { title: "Halle 2" }])).toBe("Halle 3");
});
