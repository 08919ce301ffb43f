import { createElement } from "react";
import { Provider } from "@radix-ui/react-tooltip";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { Tip, WaitingFigure } from "../ui/parts";

const drawn = (text: string | null) =>
  renderToStaticMarkup(
    createElement(
      Provider,
      null,
      createElement(Tip, { text, children: createElement("button", null, "Migrate") }),
    ),
  );

test("a button stays the same, with its focus, when a reason comes or goes", () => {
  expect(drawn("It is being moved already.")).toBe(drawn(null));
  expect(drawn(null)).toContain("Migrate");
});

test("rows that wait are counted, and where nobody knows them a dash says why, also to who does not see it", () => {
  const figure = (rows: number | null, why?: string) =>
    renderToStaticMarkup(
      createElement(Provider, null, createElement(WaitingFigure, { label: "Lag", waits: { rows, why } })),
    );
  expect(figure(1500)).toContain("1,500");
  const unknown = figure(null, "Its node sends no reports.");
  expect(unknown).toContain("–");
  expect(unknown).toContain("not known");
  expect(unknown).toContain('<span class="visually-hidden">Its node sends no reports.</span>');
  expect(unknown).not.toContain("rows");
});
