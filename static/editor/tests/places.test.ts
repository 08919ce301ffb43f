import type { SchemaField } from "../../shared/types";
import { describe, expect, test } from "vitest";
import { fittingStream } from "../adding";
import { elementsOf, findElement, placeOf } from "../../shared/document";
import * as edits from "../edits";
import { sized, toNodes, type CardNode } from "../flow";
import { arranged, besideOffset, CARD, freePlace, type Point } from "../places";
import { allSeen, lookAt, readableView, ZOOM } from "../view";
import { DOCUMENT, OPERATORS } from "../../shared/tests/documents";

const over = (a: Point, b: Point) => Math.abs(a.x - b.x) < CARD.width && Math.abs(a.y - b.y) < CARD.height;

describe("free places", () => {
  const column = [0, 100, 210].map((y) => ({ x: 0, y }));

  test("a card goes where it is wanted, else below what lies there", () => {
    expect(freePlace(column, { x: 480, y: 3 })).toEqual({ x: 480, y: 0 });
    const place = freePlace(column, { x: 100, y: 40 });
    expect(column.filter((at) => over(at, place))).toEqual([]);
    expect(place.x).toBe(96);
  });

  test("a paste lies beside the originals and over nothing, and where they were when they are gone", () => {
    const others = elementPlaces(DOCUMENT);
    const { document, ids } = edits.pasteElements(
      DOCUMENT,
      edits.copyElements(DOCUMENT, ["readings", "big"]),
    );
    const pasted = ids.map((id) => placeOf(findElement(document, id)!)!);
    expect(pasted.flatMap((place) => others.filter((at) => over(at, place)))).toEqual([]);
    expect(pasted[1]!.x - pasted[0]!.x).toBe(320);
    // beside: no farther than one step of its own height
    expect(Math.abs(pasted[0]!.y)).toBeLessThan(2 * CARD.height);
    expect(besideOffset([], others)).toEqual({ x: 0, y: 0 });
  });

  test("what is pasted again and again lies over none of what was pasted before", () => {
    let document = DOCUMENT;
    for (let time = 0; time < 6; time += 1)
      document = edits.pasteElements(document, edits.copyElements(DOCUMENT, ["big", "file"])).document;
    const all = elementPlaces(document);
    expect(all).toHaveLength(15);
    expect(all.flatMap((a, i) => all.slice(i + 1).filter((b) => over(a, b)))).toEqual([]);
  });
});

describe("rows and columns", () => {
  const cards = [
    { id: "a", x: 0, y: 40 },
    { id: "b", x: 900, y: 0 },
    { id: "c", x: 300, y: 300 },
    { id: "d", x: 310, y: 90 },
  ];
  const places = (how: Parameters<typeof arranged>[1]) =>
    Object.fromEntries(arranged(cards, how).map(([card, place]) => [card.id, place]));

  test("a row has one height and a column one left edge; no card lies over another", () => {
    const row = Object.values(places("row"));
    expect(new Set(row.map(({ y }) => y))).toEqual(new Set([0]));
    const column = Object.values(places("column"));
    expect(new Set(column.map(({ x }) => x))).toEqual(new Set([0]));
    for (const all of [row, column])
      expect(all.flatMap((a, i) => all.slice(i + 1).filter((b) => over(a, b)))).toEqual([]);
  });

  test("distributed cards are equally far apart between the outermost, and keep their other side", () => {
    expect(places("across")).toEqual({
      a: { x: 0, y: 40 },
      c: { x: 300, y: 300 },
      d: { x: 600, y: 90 },
      b: { x: 900, y: 0 },
    });
  });
});

describe("what is looked at", () => {
  const room = { width: 800, height: 600 };

  test("all of it, when its names can be read", () => {
    const { zoom, x } = readableView(
      [0, 312, 624, 936].map((x) => ({ x, y: 0 })),
      room,
    );
    expect(zoom).toBeGreaterThanOrEqual(ZOOM.readable);
    expect(x).toBeGreaterThanOrEqual(0);
    expect((936 + CARD.width) * zoom + x).toBeLessThanOrEqual(room.width);
  });

  test("its beginning, when there is too much of it", () => {
    const many = Array.from({ length: 500 }, (_, n) => ({
      x: (n % 5) * 320,
      y: 700 + Math.floor(n / 5) * 120,
    }));
    const { zoom, x, y } = readableView(many, room);
    expect(lookAt(zoom)).toBe("whole");
    expect([x >= 0 && x < 60, y + 700 * zoom >= 0 && y + 700 * zoom < 60]).toEqual([true, true]);
  });
});

describe("an element added by keyboard", () => {
  const added = (type: string, selected: string) => {
    const { document } = edits.addElement(DOCUMENT, { ...OPERATORS.get(type)!, type: "new" }, { x: 0, y: 0 });
    return fittingStream(document, new Map([...OPERATORS, ["new", OPERATORS.get(type)!]]), selected, {
      id: "new",
      operator: OPERATORS.get(type)!,
    });
  };

  test("reads the selected one where that has an output", () => {
    expect(added("filter", "big")).toEqual({
      ends: [
        { element: "big", port: "out" },
        { element: "new", port: "in" },
      ],
    });
  });

  test("is left alone where nothing fits: a source after a source, or with no free input", () => {
    expect(added("csv-replay", "readings")).toBeNull();
    expect(added("csv-replay", "file")).toBeNull();
    expect(added("csv-sink", "file")).toBeNull();
  });

  test("feeds the selected one's free input when it is a source", () => {
    const free = { ...DOCUMENT, spec: { elements: [{ id: "file", type: "csv-sink" }] } };
    const { document, id } = edits.addElement(free, OPERATORS.get("csv-replay")!, { x: 0, y: 0 });
    expect(
      fittingStream(document, OPERATORS, "file", { id, operator: OPERATORS.get("csv-replay")! }),
    ).toEqual({
      ends: [
        { element: "csv-replay", port: "out" },
        { element: "file", port: "in" },
      ],
    });
  });

  test("is left alone, and says why, where the stream lacks what it needs", () => {
    const column = { type: "string", format: "column", "x-column": { types: ["number"] } };
    const chart = {
      ...OPERATORS.get("csv-sink")!,
      type: "chart",
      params_schema: { required: ["column"], properties: { column } },
    };
    const { document, id } = edits.addElement(DOCUMENT, chart, { x: 0, y: 0 });
    const fitting = (type: SchemaField["type"]) =>
      fittingStream(
        document,
        new Map([...OPERATORS, ["chart", chart]]),
        "readings",
        { id, operator: chart },
        { "readings.out": { fields: [{ name: "machine", type }] } },
      );
    expect(fitting("string")).toEqual({
      reason: "It needs a number, and the stream has only machine (text).",
      mends: [],
    });
    expect(fitting("number")).toHaveProperty("ends");
  });
});

test("React Flow is told where the ports are, so that it need not draw a card to find out", () => {
  const [card] = toNodes(DOCUMENT, OPERATORS, [], new Set()).filter(
    (node) => node.id === "big",
  ) as CardNode[];
  const middles = card!.handles!.map(({ id, type, x, y, width, height }) => [
    id,
    type,
    x + width! / 2,
    y + height! / 2,
  ]);
  expect(middles).toEqual([
    ["in", "target", 0, CARD.draftHeight / 2],
    ["out", "source", CARD.width, CARD.draftHeight / 2],
  ]);
  const live = toNodes(DOCUMENT, OPERATORS, [card!], new Set(), true).find((node) => node.id === "big");
  expect(live!.measured!.height).toBe(CARD.height);
  expect(sized(card!, { width: 300, height: 100 }).handles![1]!.x).toBe(300 - 6);
});

function elementPlaces(document: typeof DOCUMENT): Point[] {
  return elementsOf(document).map((element) => placeOf(element)!);
}

test("a map is shown only while a card is out of sight, whole or in part", () => {
  const cards = [
    { x: 0, y: 0 },
    { x: 700, y: 300 },
  ];
  const room = { width: 1000, height: 600 };
  const fitted = readableView(cards, room);
  expect(allSeen(cards, fitted, room)).toBe(true);
  expect(allSeen(cards, { ...fitted, x: fitted.x - 200 }, room)).toBe(false);
  expect(allSeen(cards, { ...fitted, zoom: 2 * fitted.zoom }, room)).toBe(false);
  expect(allSeen([], fitted, room)).toBe(true);
});
