import { createElement } from "react";
import { Provider } from "@radix-ui/react-tooltip";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { ElementErrorNote } from "../live/drawer";
import { element } from "../../shared/tests/fixtures";
import type { LiveElement } from "../../shared/types";

const gap = {
  code: "rows-gone",
  message: "The topic t has deleted records before they were read: its partition 0 begins at offset 1500.",
  safe: "Everything up to the last committed batch is kept.",
  next: "Choose how it goes on.",
  at: "2026-11-20T12:00:00Z",
  traceback: "",
  ways: [
    {
      id: "t-0 leaves 1000",
      title: "Behind the gap",
      cost: "500 records of t at most are left out for good.",
    },
    {
      id: "t has 2",
      title: "With the new partitions",
      cost: "a reads 1 more partition of t, where 1 record waits.",
    },
  ],
} as unknown as LiveElement["error"];

const drawn = (change: Partial<LiveElement>) =>
  renderToStaticMarkup(
    createElement(
      Provider,
      null,
      createElement(ElementErrorNote, { pipeline: "p", element: element({ id: "a", ...change }) }),
    ),
  );

test("an element that stands says why, and each way on says what it costs", () => {
  const text = drawn({ error: gap, status: "failed" });
  expect(text).toContain("has deleted records before they were read");
  expect(text).toContain("Behind the gap");
  expect(text).toContain("500 records of t at most are left out for good.");
  expect(text.indexOf("Behind the gap")).toBeLessThan(text.indexOf("500 records"));
  expect(text.indexOf("500 records")).toBeLessThan(text.indexOf("With the new partitions"));
  expect(text).toContain('role="alert"');
});

test("an element without trouble says nothing", () => {
  expect(drawn({ error: null })).toBe("");
});
