import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import { node } from "../../shared/tests/fixtures";
import { drainRefusal, loadNow, nodeStatus, NOT_HEARD } from "../../shared/status";
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

test("what a silent node said last is not shown as if it were so now", () => {
  const load = { cpu_ratio: 0.5, battery_ratio: 0.83 };
  const heard = node("edge-a", { alerts: [ALERT], load });
  const silent = { ...heard, up: false };
  expect(renderToStaticMarkup(createElement(NodeTile, { node: heard }))).toContain("battery 83 %");
  const tile = renderToStaticMarkup(createElement(NodeTile, { node: silent }));
  expect(tile).not.toContain("83 %");
  expect(tile).not.toContain("Checkpoints do not reach");
  expect(renderToStaticMarkup(createElement(NodeAlerts, { node: silent }))).toBe("");
  expect([loadNow(heard), loadNow(silent)]).toEqual([load, {}]);
});

test("while control is not heard, nothing is said about what becomes of a node's elements", () => {
  const unheard = node("edge-a", { up: false, heard: false });
  const tile = renderToStaticMarkup(createElement(NodeTile, { node: unheard }));
  expect(tile).toContain("not heard");
  expect(tile).not.toContain("silent");
  expect(tile).not.toContain("owned nothing");
  expect([nodeStatus(unheard), drainRefusal({ ...unheard, drain_blocked: "x" })]).toEqual([
    "not heard",
    NOT_HEARD,
  ]);
});

test("a node that says nothing has no such lines", () => {
  expect(renderToStaticMarkup(createElement(NodeTile, { node: node("edge-a") }))).not.toContain("care");
  expect(renderToStaticMarkup(createElement(NodeAlerts, { node: node("edge-a") }))).toBe("");
});
