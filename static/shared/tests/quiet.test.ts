import { expect, test } from "vitest";
import { toTheSecond } from "../format";
import { quietOf } from "../quiet";
import { element } from "./fixtures";

const NOW = Date.parse("2026-11-28T12:00:00Z");
const at = (ms: number) => new Date(NOW + ms).toISOString();

test("a source with a clock of its own says when its next row is due", () => {
  const quiet = quietOf(element({ last_row_at: at(-50_000), next_row_due_at: at(70_000) }), NOW);
  expect(quiet).toMatchObject({ label: "Next row due", value: "in 1 min 10 s" });
});

test("without a clock it is said since when no row has come", () => {
  const quiet = quietOf(element({ last_row_at: at(-50_000) }), NOW);
  expect(quiet).toMatchObject({ label: "No row since", value: toTheSecond(NOW - 50_000) });
});

test("nothing is said while rows come, and of what is paused, ended or not heard", () => {
  const old = { last_row_at: at(-50_000) };
  for (const change of [
    { last_row_at: at(-2_000), next_row_due_at: at(1_000) },
    { last_row_at: null },
    { ...old, paused: true },
    { ...old, ended: true },
    { ...old, heard: false },
  ])
    expect(quietOf(element(change), NOW)).toBeNull();
});
