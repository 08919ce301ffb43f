import { beforeEach, expect, test, vi } from "vitest";
import type { PipelineDocument, Role } from "../../shared/types";
import { findElement } from "../../shared/document";
import { changeElement } from "../edits";
import { DOCUMENT } from "../../shared/tests/documents";

class FakeStorage {
  [key: string]: unknown;
  getItem(key: string): string | null {
    return Object.hasOwn(this, key) ? (this[key] as string) : null;
  }
  setItem(key: string, text: string): void {
    this[key] = text;
  }
  removeItem(key: string): void {
    delete this[key];
  }
}

/** The server's draft; a PUT with another revision is refused with what is there. */
const server = { name: "p", document: DOCUMENT, revision: 1, away: false, answers: true, signedIn: true };

const pipeline = () =>
  ({ id: 7, name: server.name, document: server.document, revision: server.revision }) as never;

async function put(path: string, init: RequestInit): Promise<Response> {
  if (server.away) throw new TypeError("fetch failed");
  if (!server.signedIn) return new Response("{}", { status: 401 });
  if (init.method === "GET") return new Response(JSON.stringify(server.name ? [pipeline()] : []));
  if (!path.endsWith(`/pipelines/${server.name}`)) return new Response("{}", { status: 404 });
  const match = Number((init.headers as Record<string, string>)["If-Match"]?.replaceAll('"', ""));
  const { document } = JSON.parse(init.body as string) as { document: PipelineDocument };
  if (match !== server.revision) {
    const problem = { status: 409, theirs: server.document, revision: server.revision };
    return new Response(JSON.stringify(problem), { status: 409 });
  }
  Object.assign(server, { document, revision: server.revision + 1 });
  if (!server.answers) throw new TypeError("the answer was lost");
  return new Response(JSON.stringify(pipeline()));
}

/** A page that is loaded again, in the same tab or in another one. */
async function visit(tab: FakeStorage, role: Role = "editor") {
  vi.stubGlobal("sessionStorage", tab);
  vi.resetModules();
  const { page } = await import("../../shared/page");
  page.user = { username: "ada", role };
  const store = await import("../store");
  const { autosave } = await import("../autosave");
  store.open(pipeline(), []);
  autosave.start(pipeline());
  const resumed = autosave.resume(pipeline());
  const title = (id: string, text: string) =>
    store.commit(changeElement(store.current(), id, { title: text }));
  return { autosave, store, resumed, title, save: () => store.useEditor.getState().save };
}

beforeEach(() => {
  const fresh = { name: "p", document: DOCUMENT, revision: 1, away: false, answers: true, signedIn: true };
  Object.assign(server, fresh);
  vi.stubGlobal("localStorage", new FakeStorage());
  vi.stubGlobal("fetch", put);
  // Nothing is saved by itself: on a slow machine an earlier page would save between two lines of a test.
  const location = { href: "http://fogline/pipelines/p?mode=edit", replace: vi.fn() };
  vi.stubGlobal("window", {
    location,
    addEventListener: vi.fn(),
    setTimeout: vi.fn(),
    clearTimeout: vi.fn(),
  });
});

test("what an earlier visit could not save is merged from what it was begun from", async () => {
  const tab = new FakeStorage();
  const first = await visit(tab);
  server.away = true;
  first.title("big", "Mine");
  await first.autosave.flush();
  server.away = false;
  // somebody else saves meanwhile
  Object.assign(server, { document: changeElement(DOCUMENT, "file", { title: "Theirs" }), revision: 2 });

  for (const reload of [1, 2]) {
    const { resumed, autosave, store } = await visit(tab);
    expect([reload, resumed]).toEqual([reload, "conflict"]);
    const { mergeDocuments } = await import("../merge");
    const merged = mergeDocuments(autosave.base!, store.current(), server.document);
    expect(merged.conflicts).toEqual([]);
    expect(findElement(merged.document, "file")?.title).toBe("Theirs");
    expect(findElement(merged.document, "big")?.title).toBe("Mine");
    await autosave.flush();
    expect(findElement(server.document, "file")?.title).toBe("Theirs");
  }
});

test("a tab does not lose what another one could not save", async () => {
  const a = new FakeStorage();
  const first = await visit(a);
  server.away = true;
  first.title("big", "A");
  await first.autosave.flush();
  server.away = false;

  const second = await visit(new FakeStorage());
  expect(second.resumed).toBe("saving"); // it takes up what the first one has left
  await second.autosave.flush();
  expect(findElement(server.document, "big")?.title).toBe("A");
  second.title("file", "B");
  await second.autosave.flush();
  expect(second.save().state).toBe("saved");

  first.title("big", "A2"); // the first one is still there, and knows nothing of that
  await first.autosave.flush();
  expect(first.save().state).toBe("conflict");
  expect((await visit(a)).resumed).toBe("conflict");
});

test("a save whose answer was lost is no conflict with oneself", async () => {
  const { autosave, title, save } = await visit(new FakeStorage());
  server.answers = false;
  title("big", "Mine");
  await autosave.flush();
  expect(save().state).toBe("failed");
  server.answers = true;
  expect(await autosave.flush()).toBe(true);
  expect(save().state).toBe("saved");
  title("big", "Mine, too");
  await autosave.flush();
  expect(findElement(server.document, "big")?.title).toBe("Mine, too");
});

test("what somebody else has saved is shown only while nothing of ours is on its way", async () => {
  const { autosave, store, title } = await visit(new FakeStorage());
  Object.assign(server, { document: changeElement(DOCUMENT, "file", { title: "Theirs" }), revision: 2 });
  expect(autosave.isBehind(2)).toBe(true);
  title("big", "Mine");
  expect(autosave.isBehind(2)).toBe(false);
  store.undo();
  expect(autosave.takeTheirs(pipeline())).toBe(true);
  expect(findElement(store.current(), "file")?.title).toBe("Theirs");
  expect(autosave.pending()).toBe(false);
  store.undo(); // not behind what they did
  expect(findElement(store.current(), "file")?.title).toBe("Theirs");
  title("big", "Mine");
  await autosave.flush();
  expect(server.revision).toBe(3);
});

test("who may not save takes nothing away from who may, nor does a new name", async () => {
  const first = await visit(new FakeStorage());
  server.away = true;
  first.title("big", "Mine");
  await first.autosave.flush();
  server.away = false;

  expect((await visit(new FakeStorage(), "viewer")).resumed).toBe("nothing");
  const { renameCopies, takeCopy } = await import("../../shared/local-copies");
  renameCopies("p", "q");
  const copy = takeCopy("q");
  expect([copy?.document.metadata.name, copy?.base.metadata.name]).toEqual(["q", "q"]);
  expect(copy && findElement(copy.document, "big")?.title).toBe("Mine");
  expect(takeCopy("p")).toBeNull();
});

test("a draft that follows a move is neither a conflict nor the end of undo", async () => {
  const pinned = (node: string, document = DOCUMENT) => changeElement(document, "big", { node });
  server.document = pinned("edge-a");
  const tab = new FakeStorage();
  const { autosave, store, title, save } = await visit(tab);
  const move = (from: string, to: string) => {
    expect(findElement(server.document, "big")?.node).toBe(from);
    Object.assign(server, { document: pinned(to, server.document), revision: server.revision + 1 });
  };

  // while nothing is on its way
  title("file", "Mine");
  await autosave.flush();
  move("edge-a", "edge-b");
  expect(autosave.takeTheirs(pipeline())).toBe(false);
  expect(findElement(store.current(), "big")?.node).toBe("edge-b");
  store.undo();
  expect(findElement(store.current(), "file")?.title).not.toBe("Mine");
  expect(findElement(store.current(), "big")?.node).toBe("edge-b");

  // while somebody edits
  title("file", "Mine, too");
  move("edge-b", "edge-a");
  expect(await autosave.flush()).toBe(true);
  expect(save().state).toBe("saved");
  expect(findElement(server.document, "file")?.title).toBe("Mine, too");
  expect(findElement(server.document, "big")?.node).toBe("edge-a");

  // while what somebody did could not be saved
  server.away = true;
  title("file", "Offline");
  await autosave.flush();
  server.away = false;
  move("edge-a", "edge-b");
  const later = await visit(tab);
  expect(later.resumed).toBe("saving");
  await later.autosave.flush();
  expect(findElement(server.document, "file")?.title).toBe("Offline");
  expect(findElement(server.document, "big")?.node).toBe("edge-b");
});

test("a new id that somebody else gives the pipeline is followed, with what is not saved yet", async () => {
  const tab = new FakeStorage();
  const { autosave, title } = await visit(tab);
  title("big", "Mine");
  const named = { ...server.document, metadata: { ...server.document.metadata, name: "q" } };
  Object.assign(server, { name: "q", document: named, revision: 2 });
  expect(await autosave.flush()).toBe(false);
  await vi.waitFor(() => expect(window.location.replace).toHaveBeenCalled());
  const address = vi.mocked(window.location.replace).mock.calls[0]?.[0];
  expect(String(address)).toBe("http://fogline/pipelines/q?mode=edit&was=p");
  expect(autosave.pending()).toBe(false); // the page may go without a question

  const next = await visit(tab);
  expect(next.resumed).toBe("saving"); // not a conflict: the name alone has changed
  await next.autosave.flush();
  expect(findElement(server.document, "big")?.title).toBe("Mine");
  expect(server.document.metadata.name).toBe("q");
});

test("a pipeline that somebody else deletes leaves the draft where it is", async () => {
  const { autosave, store, title, save } = await visit(new FakeStorage());
  title("big", "Mine");
  server.name = "";
  expect(await autosave.flush()).toBe(false);
  await vi.waitFor(() => expect(save().state).toBe("deleted"));
  title("file", "Mine, too");
  expect(await autosave.flush()).toBe(false);
  expect(save().state).toBe("deleted"); // until the user has chosen
  expect(findElement(store.current(), "file")?.title).toBe("Mine, too");
  const { copiesWithout } = await import("../../shared/local-copies");
  expect(copiesWithout(new Set(["p"])).size).toBe(0);
  const left = copiesWithout(new Set(["q"])).get("p")!; // the list of pipelines offers it
  expect(findElement(left.document, "file")?.title).toBe("Mine, too");
});

test("a session that ends keeps the draft, which is saved when somebody has signed in", async () => {
  const { autosave, title, save } = await visit(new FakeStorage());
  const { useSession } = await import("../../shared/api");
  server.signedIn = false;
  title("big", "Mine");
  expect(await autosave.flush()).toBe(false);
  expect([save().state, useSession.getState().over]).toEqual(["failed", true]);
  server.signedIn = true;
  expect(await autosave.flush()).toBe(true);
  expect([save().state, useSession.getState().over]).toEqual(["saved", false]);
  expect(findElement(server.document, "big")?.title).toBe("Mine");
});
