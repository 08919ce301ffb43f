import { createElement } from "react";
import { Provider } from "@radix-ui/react-tooltip";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { Tip } from "../ui/parts";

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
