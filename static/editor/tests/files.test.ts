import { expect, test } from "vitest";
import { acceptOf, isFor } from "../form/files";

const DATA = { type: "string", format: "file" };
const MODEL = { ...DATA, "x-accept": [".onnx"] };

test("a field of models offers models alone, one of data everything else", () => {
  const names = ["beats.onnx", "BEATS.ONNX", "readings.csv", "readings"];
  expect(names.filter((name) => isFor(MODEL, name))).toEqual(["beats.onnx", "BEATS.ONNX"]);
  expect(names.filter((name) => isFor(DATA, name))).toEqual(["readings.csv", "readings"]);
});

test("the chooser offers what the schema says", () => {
  expect(acceptOf(MODEL)).toEqual([".onnx"]);
  expect(acceptOf(DATA)).toContain(".csv");
});
