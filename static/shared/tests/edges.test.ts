import { expect, test } from "vitest";
import { moreAt } from "../ui/edges";

test("a shade stands where more lies, and a part of a pixel is nothing", () => {
  const at = (scrollLeft: number) => moreAt({ scrollLeft, scrollWidth: 500, clientWidth: 300 });
  expect([at(0), at(80), at(199.4), at(200)]).toEqual(["right", "left right", "left", "left"]);
  expect(moreAt({ scrollLeft: 0, scrollWidth: 300.5, clientWidth: 300 })).toBe("");
});
