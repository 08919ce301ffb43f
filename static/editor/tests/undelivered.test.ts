import { expect, test } from "vitest";
import { deliversFirst, lostNow } from "../undelivered";

const WAITS = { element: "out", title: "To the plant", rows: 1200, estimated: false, why: "", unread: false };

test("an undeployment says which rows wait, and why", () => {
  const table = { ...WAITS, title: "Table", rows: 1, estimated: true, why: "it does not answer" };
  expect(deliversFirst([WAITS, table])).toBe(
    "Not delivered yet: 1,200 rows of To the plant; about 1 row of Table (it does not answer). " +
      "Fogline waits until these are delivered, or until none was delivered for 90 s.",
  );
});

test("it says if nothing waits, and that nobody knows if Kafka does not answer", () => {
  expect(deliversFirst([])).toBe("No row waits for its delivery.");
  expect(deliversFirst(null)).toContain("nobody knows");
});

test("what is lost is said as far as it is counted", () => {
  expect(lostNow([])).toBe("Fogline has not counted yet how many rows wait.");
  expect(lostNow([{ ...WAITS, rows: null }])).toBe(
    "Not delivered yet: an unknown number of rows of To the plant (Kafka does not answer).",
  );
});
