import { describe, expect, test } from "vitest";
import { chosenOf, drawnElsewhere, fieldsOf } from "../form/schema";
import { patched, timed } from "../form/table";

const TABLE = { without_time: { rate: 10 } };

describe("a file that is chosen", () => {
  test("without a time gets rows per second, and one with a time the recorded pace again", () => {
    const timeless = patched({}, timed(TABLE, false, {}));
    expect(timeless).toEqual({ rate: 10 });
    expect(patched(timeless, timed(TABLE, true, timeless))).toEqual({});
  });

  test("leaves a pace that a person has set", () => {
    const own = { rate: 50 };
    expect(patched(own, timed(TABLE, false, own))).toEqual(own);
    expect(patched(own, timed(TABLE, true, own))).toEqual(own);
  });
});

describe("choices in words", () => {
  const choices = [
    { title: "as recorded", value: null, with: ["speed"] },
    { title: "rows per second", given: 10 },
    { title: "as fast as it goes", value: 1e6 },
  ];

  test("a value is one of them, or the number that is asked for", () => {
    expect([null, undefined, 1e6, 25, "x"].map((value) => chosenOf(choices, value))).toEqual([0, 0, 2, 1, 1]);
  });

  test("what belongs to a choice is drawn there alone", () => {
    const schema = {
      properties: {
        path: { type: "string", format: "file", "x-table": TABLE },
        rate: { anyOf: [{ type: "number" }, { type: "null" }], default: null, "x-choices": choices },
        speed: { type: "number" },
      },
    };
    const fields = fieldsOf(schema, schema, "params");
    expect(fields.map((field) => field.kind)).toEqual(["file", "choices", "number"]);
    const elsewhere = drawnElsewhere(fields);
    expect(fields.filter((field) => !elsewhere.has(field.name)).map((field) => field.name)).toEqual([
      "path",
      "rate",
    ]);
  });
});
