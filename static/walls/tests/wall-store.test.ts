import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Tile, Wall } from "../../shared/types";
import { change, current, flush, follow, open, resolve, retitle, undo, useWall } from "../wall-store";

const tile = (text: string): Tile => ({ id: "text-1", kind: "text", text, x: 0, y: 0, w: 6, h: 3 });
const WALL: Wall = { id: "hall", title: "Hall", revision: 3, tiles: [], changed_at: "", changed_by: null };
const TAKEN = "Taken";
let server: Wall;
let sent: string[];

beforeEach(() => {
  server = WALL;
  sent = [];
  const answer = (status: number, body: unknown) => new Response(JSON.stringify(body), { status });
  vi.stubGlobal("fetch", async (_: string, { method, headers, body }: RequestInit) => {
    if (method === "GET") return answer(200, server);
    sent.push(String(body));
    const revision = Number((headers as Record<string, string>)["If-Match"]?.replaceAll('"', ""));
    if (String(body).includes(TAKEN)) return answer(409, { title: "Conflict", status: 409, detail: "taken" });
    if (revision !== server.revision)
      return answer(409, { title: "Overtaken", status: 409, theirs: server, revision: server.revision });
    server = { ...server, ...(JSON.parse(String(body)) as Partial<Wall>), revision: revision + 1 };
    return answer(200, server);
  });
  open(WALL);
});

afterEach(() => vi.unstubAllGlobals());

const state = () => useWall.getState().save.state;

test("a change is saved whole, with the revision that it began from", async () => {
  change({ tiles: [tile("a")] });
  expect(state()).toBe("dirty");
  await flush();
  expect(state()).toBe("saved");
  expect(server).toMatchObject({ revision: 4, title: "Hall", tiles: [tile("a")] });
  change({ title: "Hall 2" });
  await flush();
  expect(server).toMatchObject({ revision: 5, title: "Hall 2" });
});

test("undo is saved too", async () => {
  change({ tiles: [tile("a")] });
  await flush();
  undo();
  await flush();
  expect(server.tiles).toEqual([]);
});

test("what the server adds by itself is no change, and is taken over", async () => {
  const written = { ...tile("a"), title: "", decimals: null } as Tile;
  change({ tiles: [tile("a")] });
  const answered = globalThis.fetch;
  vi.stubGlobal("fetch", async (path: string, init: RequestInit) => {
    const answer = await answered(path, init);
    server = { ...server, tiles: [written] };
    return new Response(JSON.stringify(server), { status: answer.status });
  });
  await flush();
  expect(state()).toBe("saved");
  expect(current().tiles).toEqual([written]);
  change({ tiles: [{ ...written }] });
  await flush();
  expect(sent).toHaveLength(1);
});

test("nothing is sent when nothing has changed", async () => {
  change({ tiles: [] });
  await flush();
  expect(sent).toEqual([]);
});

test("what somebody else saved is not written over: the user chooses ours", async () => {
  server = { ...WALL, revision: 9, title: "Theirs" };
  change({ tiles: [tile("ours")] });
  await flush();
  expect(state()).toBe("conflict");
  expect(server.title).toBe("Theirs");
  resolve("ours");
  await flush();
  expect(server).toMatchObject({ revision: 10, title: "Hall", tiles: [tile("ours")] });
});

test("theirs can be taken, and undo brings ours back", async () => {
  server = { ...WALL, revision: 9, title: "Theirs" };
  change({ tiles: [tile("ours")] });
  await flush();
  resolve("theirs");
  expect(state()).toBe("saved");
  expect(current()).toEqual({ title: "Theirs", tiles: [] });
  undo();
  await flush();
  expect(server).toMatchObject({ revision: 10, tiles: [tile("ours")] });
});

test("an answer that was lost is no conflict", async () => {
  change({ tiles: [tile("a")] });
  server = { ...WALL, revision: 4, tiles: [tile("a")] };
  await flush();
  expect(state()).toBe("saved");
  expect(useWall.getState().wall.revision).toBe(4);
});

test("what somebody else saves is shown, unless something of ours waits", async () => {
  server = { ...WALL, revision: 5, title: "Theirs" };
  await follow(5);
  expect(current().title).toBe("Theirs");
  change({ title: "Ours" });
  server = { ...server, revision: 6, title: "Theirs again" };
  await follow(6);
  expect(current().title).toBe("Ours");
});

test("a title that is refused leaves the old one, and later changes are saved", async () => {
  expect(await retitle("Hall 4")).toBeNull();
  expect(server.title).toBe("Hall 4");
  expect(await retitle(TAKEN)).toMatch("taken");
  expect(current().title).toBe("Hall 4");
  change({ tiles: [tile("a")] });
  await flush();
  expect(state()).toBe("saved");
  expect(server).toMatchObject({ title: "Hall 4", tiles: [tile("a")] });
});
