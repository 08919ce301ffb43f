import { describe, expect, test } from "vitest";
import { extentOf, tickFormat, valueFormat } from "../digits";

describe("the digits of a chart", () => {
  test("tell ticks apart, whatever they are far from zero", () => {
    expect(tickFormat(1234567.5, 1234567.6)).toBe(",.2~f");
    expect(tickFormat(49.998, 50.002)).toBe(",.3~f");
    expect(tickFormat(52.520008, 52.520009)).toBe(",.7~f");
    expect(tickFormat(0, 100)).toBe(",.0~f");
    expect(tickFormat(-1, 1)).toBe(",.1~f");
  });

  test("are few where few are enough", () => {
    expect(tickFormat(0, 1_200_000)).toBe(".2~s");
    expect(tickFormat(0, 0.0004)).toBe(".2~s");
  });

  test("of one value are more than those of the ticks", () => {
    expect(valueFormat(1234567.5, 1234567.6)).toBe(",.4~f");
    expect(valueFormat(49.998, 50.002)).toBe(",.6~f");
    expect(valueFormat(0, 1_000_000)).toBe(",.0~f");
    expect(valueFormat(1e-20, 2e-20)).toBe(".6~g");
  });

  test("are also known where all values are the same, or there are none", () => {
    expect(tickFormat(50, 50)).toBe(",.0~f");
    expect(tickFormat(0, 0)).toBe(",.1~f");
    expect(extentOf([null, undefined, NaN])).toBeNull();
    expect(extentOf([3, null, -1])).toEqual([-1, 3]);
  });
});
