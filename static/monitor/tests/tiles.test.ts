import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import type { PipelineItem } from "../../shared/types";
import { element } from "../../shared/tests/fixtures";
import { RunningTile, troubles } from "../pipeline-tile";

const PIPELINE: PipelineItem = {
  id: 1,
  name: "watched",
  title: "watched",
  revision: 1,
  status: "running",
  deployed_version: 2,
  deployment: "d",
  message: "",
  upgrade_failed: null,
  differs: true,
  elsewhere: [],
  description: null,
  updated_at: "2026-11-01T00:00:00Z",
  updated_by: "ada",
  elements: 2,
};

test("a tile's curve says what it shows to who does not see it", () => {
  const throughput = { sources: ["in"], step_ms: 10_000, until_ms: 0, rows_per_s: [null, 3, 12, 9, null, 1] };
  const html = renderToStaticMarkup(createElement(RunningTile, { pipeline: PIPELINE, throughput }));
  expect(html).toContain(
    'role="img" aria-label="Rows that entered watched in the last 1 minute: at most 12 rows/s"',
  );
  expect(html.match(/class="spark__line"/g)).toHaveLength(1);
  expect(html).toContain("version 2 · draft differs");
});

test("a pipeline whose figures were not told yet has no curve", () => {
  const html = renderToStaticMarkup(
    createElement(RunningTile, { pipeline: PIPELINE, throughput: undefined }),
  );
  expect(html).not.toContain("svg");
});

test("a tile says which element does not process, and that a node is not heard", () => {
  const found = (["running", "silent", "unheard", "starting", "paused"] as const).map((status) =>
    element({ id: status, title: status, status }),
  );
  expect(troubles(found)).toEqual([
    "silent: node does not answer",
    "unheard: not heard",
    "starting: does not process yet",
  ]);
});
