import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { DialogAction } from "../ui/dialog";

const drawn = (refused: string | null) =>
  renderToStaticMarkup(createElement(DialogAction, { title: "Restore", refused, run: () => undefined }));

test("a dialog says why it cannot do what it is for, and the button can be reached to hear it", () => {
  const refused = drawn("The node is cordoned.");
  expect(refused).toMatch(/<p id="([^"]+)"[^>]*>The node is cordoned\.<\/p>.*aria-describedby="\1"/);
  expect(refused).toContain('aria-disabled="true"');
  expect(refused).not.toContain(" disabled");
  expect(drawn(null)).not.toContain("aria-describedby");
});
