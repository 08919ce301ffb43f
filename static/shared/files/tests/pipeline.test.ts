import { expect, test } from "vitest";
import { draftOf, offered, titleOf } from "../pipeline";
import type { StoredFile } from "../types";

const uploaded = (day: number, state: StoredFile["state"] = "imported"): StoredFile =>
  ({ id: `file-${day}`, state, created_at: `2026-11-0${day}T00:00:00Z` }) as StoredFile;

test("a pipeline can start with the newest tables, and with the one that was asked for", () => {
  const files = [1, 2, 3, 4, 5].map((day) => uploaded(day));
  expect(offered(files).map(({ id }) => id)).toEqual(["file-5", "file-4", "file-3"]);
  expect(offered(files, "file-1").map(({ id }) => id)).toEqual(["file-5", "file-4", "file-3", "file-1"]);
  expect(offered([uploaded(1, "looking"), uploaded(2, "model")])).toEqual([]);
});

test("a pipeline is called like its file, without the endings", () => {
  expect(titleOf({ name: "Maschinen_März.csv" })).toBe("Maschinen_März");
  expect(titleOf({ name: "day 1.csv.gz" })).toBe("day 1");
  expect(titleOf({ name: ".csv" })).toBe(".csv");
  expect(titleOf({ name: `${"x".repeat(300)}.csv` })).toHaveLength(120);
});

test("its draft has one element, which plays the file", () => {
  const { spec } = draftOf({ reference: "upload:7" });
  expect(spec?.elements).toMatchObject([{ type: "csv-replay", params: { path: "upload:7" } }]);
});
