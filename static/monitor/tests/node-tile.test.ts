import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { node } from "../../shared/tests/fixtures";
import { NodeAlerts } from "../../shared/ui/node-alerts";
import { NodeTile } from "../node-tile";

const ALERT = {
  message: "Checkpoints do not reach cloud at the moment. Running elements are not affected.",
  since: new Date().toISOString(),
};

test("what a node says is wrong with it is on its tile, its first sentence, and whole on its page", () => {
  const told = node("edge-a", { alerts: [ALERT] });
  const tile = renderToStaticMarkup(createElement(NodeTile, { node: told }));
  expect(tile).toContain("Checkpoints do not reach cloud at the moment</span>");
  expect(renderToStaticMarkup(createElement(NodeAlerts, { node: told }))).toContain(
    `edge-a: ${ALERT.message}`,
  );
});

test("a node that says nothing has no such lines", () => {
  expect(renderToStaticMarkup(createElement(NodeTile, { node: node("edge-a") }))).not.toContain("care");
  expect(renderToStaticMarkup(createElement(NodeAlerts, { node: node("edge-a") }))).toBe("");
});
