import { expect, test } from "vitest";
import { twoWays, typedNumber, withPoint } from "../numbers";

test.each([
  ["81,5", 81.5],
  [" -0,125 ", -0.125],
  [",5", 0.5],
  ["12345,678", 12345.678],
  ["1,5e3", 1500],
  ["1.234", 1.234],
  ["-17", -17],
])("%s is %d", (typed, number) => expect(typedNumber(typed)).toBe(number));

test.each(["", "eighty", "1,234", "1,2,3", "1.234,5", "1e999", "0x10", "5,"])("%s is no number", (typed) =>
  expect(typedNumber(typed)).toBeNaN(),
);

test("what can be read in two ways stays as it is, and is asked", () => {
  expect(withPoint("1,234")).toBe("1,234");
  expect(twoWays("1,234")).toBe("1,234 can be read in two ways: type 1.234 or 1234.");
  expect(twoWays("0,125")).toBeNull();
});
