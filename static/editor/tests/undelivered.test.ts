import { expect, test } from "vitest";
import { deliversFirst } from "../undelivered";

const WAITS = { element: "out", title: "To the plant", rows: 1200, estimated: false, why: "" };

test("an undeployment says which rows wait, and why", () => {
  const table = { element: "t", title: "Table", rows: 1, estimated: true, why: "it does not answer" };
  expect(deliversFirst([WAITS, table])).toBe(
    "Not delivered yet: 1,200 rows of To the plant; about 1 row of Table (it does not answer). " +
      "It waits for them, and goes on when no row was delivered for 30 s.",
  );
});

test("it says nothing if nothing waits, and that nobody knows if Kafka does not answer", () => {
  expect(deliversFirst([])).toBe("");
  expect(deliversFirst(null)).toContain("nobody knows");
});
