import { expect, test } from "vitest";
import { drawn, pieces } from "../lines";

const cells = (line: string, delimiter: string, quote = '"') =>
  pieces(line, delimiter, quote)
    .filter(({ cell }) => cell !== null)
    .map(({ text }) => text);

test("a line is divided at its delimiters, and nothing of it is lost", () => {
  for (const [line, delimiter] of [
    ["a,b,,c", ","],
    ["1;2\t3;", ";"],
    ["", ","],
    ["  1.5   2\t 3 ", "whitespace"],
    ['"a,b",c', ","],
    ["a||b||c", "||"],
  ] as const)
    expect(
      pieces(line, delimiter, '"')
        .map(({ text }) => text)
        .join(""),
    ).toBe(line);
});

test("each cell has its place in the row", () => {
  expect(cells("a,b,,c", ",")).toEqual(["a", "b", "", "c"]);
  expect(cells("a\tb", "\t")).toEqual(["a", "b"]);
  expect(cells("1.5   2\t 3", "whitespace")).toEqual(["1.5", "2", "3"]);
  expect(pieces("a,b", ",", '"').map(({ cell }) => cell)).toEqual([0, null, 1]);
});

test("fixed places divide a line, and what is behind its end is empty", () => {
  const found = pieces("20240501  idle1.5", "places", "", [8, 14, 20]);
  expect(found.filter(({ cell }) => cell !== null).map(({ text }) => text)).toEqual([
    "20240501",
    "  idle",
    "1.5",
    "",
  ]);
  expect(found.map(({ cell }) => cell)).toEqual([0, null, 1, null, 2, null, 3]);
});

test("a delimiter within quotes divides nothing", () => {
  expect(cells('"a;b";"say ""x;y""";c', ";")).toEqual(['"a;b"', '"say ""x;y"""', "c"]);
  expect(cells("'a,b',c", ",", "'")).toEqual(["'a,b'", "c"]);
  expect(cells('"a,b",c', ",", "")).toEqual(['"a', 'b"', "c"]);
  // a mark within a cell, such as inches, opens nothing
  expect(cells('2.5",b', ",")).toEqual(['2.5"', "b"]);
});

test("what is not seen is drawn", () => {
  expect([drawn("\t"), drawn("  "), drawn(",")]).toEqual(["→", "··", ","]);
});
