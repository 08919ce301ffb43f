import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, test } from "vitest";
import type { PipelineItem } from "../../shared/types";
import { element } from "../../shared/tests/fixtures";
import { RunningTile, standing } from "../pipeline-tile";

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

test("a tile says which elements do not process, or are paused, and why", () => {
  const found = (["running", "silent", "paused", "unheard", "silent", "starting"] as const).map(
    (status, at) => element({ id: `e${at}`, title: `E ${at}`, status }),
  );
  expect(standing(found)).toEqual([
    "Node does not answer: E 1 and E 4",
    "Paused: E 2",
    "Not heard: E 3",
    "Does not process yet: E 5",
  ]);
});
