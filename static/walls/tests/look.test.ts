import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { LookWanted, TileState } from "../../shared/types";
import { askCurve, askLoad, lookAt, soon, useSeen, withOld, type Tiles } from "../look";

const record = { partition: 0, offset: 1, at: "2026-11-29T12:00:00Z", key: null, value: { n: 1 } };
const tile = (problem: string | null, element = "power"): TileState => ({
  sources: [{ pipeline: "p", element, title: element, status: "running", last_row_at: null, problem }],
  alarm: null,
  figure: null,
  rows: problem === null ? { stream: element, records: [record] } : null,
  picture: null,
  limits: null,
});
const state = (tiles: Record<string, TileState>): Tiles => ({ at: "", revision: 1, tiles });
const curve = (stream: string) => ({ stream, records: [], rows: 0, left_out: 0, cursor: "0:1" });

let asked: LookWanted[] = [];
/** what the server has no time for */
let late: string[] = [];

beforeEach(() => {
  asked = [];
  late = [];
  vi.useFakeTimers();
  vi.stubGlobal("document", { visibilityState: "visible" });
  vi.stubGlobal("fetch", async (_: string, { body }: RequestInit) => {
    const wanted = JSON.parse(String(body)) as LookWanted;
    asked.push(wanted);
    const problem = { title: "Not Found", status: 404, detail: "gone" };
    const curves = (wanted.curves ?? []).map(({ tile: id }) => {
      if (id === "gone") return { curve: null, problem };
      return { curve: late.includes(id) ? null : curve(id), problem: null };
    });
    const loads = (wanted.loads ?? []).map(() => ({ points: [{ t: 7 }], problem: null }));
    return new Response(JSON.stringify({ ...state({ a: tile(null) }), curves, loads }));
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("all tiles are asked for by one request, and a curve that fails leaves the others", async () => {
  const stop = lookAt("hall");
  const answers = Promise.allSettled([
    askCurve({ tile: "a" }),
    askCurve({ tile: "gone" }),
    askCurve({ tile: "b", series: 1, after: "0:1" }),
    askLoad({ tile: "l", after: 3 }),
  ]);
  await vi.advanceTimersByTimeAsync(100);
  expect(asked).toHaveLength(1);
  const [a, gone, b, load] = await answers;
  expect(a).toMatchObject({ status: "fulfilled", value: { stream: "a" } });
  expect(gone).toMatchObject({ status: "rejected", reason: { status: 404 } });
  expect(b).toMatchObject({ status: "fulfilled", value: { stream: "b" } });
  expect(load).toMatchObject({ status: "fulfilled", value: [{ t: 7 }] });
  expect(useSeen.getState().received?.state.tiles).toEqual({ a: tile(null) });
  stop();
});

test("it looks every 2 s, at once where that is wanted, and no more when it is over", async () => {
  const stop = lookAt("hall");
  await vi.advanceTimersByTimeAsync(2000);
  void askCurve({ tile: "a", after: "0:1" }).catch(() => undefined);
  expect(asked).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(100);
  expect(asked.map(({ curves }) => curves?.length)).toEqual([0, 1]);
  soon();
  await vi.advanceTimersByTimeAsync(100);
  expect(asked).toHaveLength(3);
  stop();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked).toHaveLength(3);
});

test("what there was no time for is the first of the next look", async () => {
  late = ["a"];
  const stop = lookAt("hall");
  const answer = askCurve({ tile: "a" });
  await vi.advanceTimersByTimeAsync(100);
  late = [];
  void askCurve({ tile: "b" });
  await vi.advanceTimersByTimeAsync(2100);
  expect(asked[1]?.curves?.map(({ tile: id }) => id)).toEqual(["a", "b"]);
  expect(await answer).toMatchObject({ stream: "a" });
  stop();
});

test("a table that cannot be read keeps its rows and says why, and one of another element does not", () => {
  const before = state({ a: tile(null), b: tile(null), c: tile(null) });
  const now = state({ a: tile("away"), b: tile("away", "other"), c: tile(null), d: tile("away") });
  const { a, b, c, d } = withOld(before, now).tiles;
  expect(a).toEqual({ ...tile(null), sources: tile("away").sources });
  expect([b, c, d]).toEqual([tile("away", "other"), tile(null), tile("away")]);
  expect(withOld(null, now)).toEqual(now);
});
