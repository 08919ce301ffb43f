/**
 * A wall that is shown and changed. Changes are saved by themselves, each can be undone.
 *
 *     saved --change--> dirty --0.7 s--> saving --ok--> saved
 *                         ^                 |--409--> conflict --choice--> dirty, or saved
 *                         +---- retry ------+--else--> failed
 */
import { create } from "zustand";
import { ApiError, get, problemText, request } from "../shared/api";
import * as past from "../shared/history";
import type { Problem, Tile, Wall } from "../shared/types";
import { wallPath } from "../shared/wall-tiles";

const QUIET_MS = 700;
const RETRY_MS = 4000;

/** What of a wall can be changed. */
export interface Content {
  title: string;
  tiles: readonly Tile[];
}

type Save =
  | { state: "saved" }
  | { state: "dirty" }
  | { state: "saving" }
  | { state: "failed"; why: string }
  /** somebody else has saved: theirs is kept beside ours until the user chooses */
  | { state: "conflict"; theirs: Wall };

interface WallStore {
  /** as the server has it */
  wall: Wall;
  /** what of ours the server has: it writes it in its own way */
  saved: Content;
  history: past.History<Content>;
  save: Save;
  editing: boolean;
  /** the tile that the keyboard moves */
  selected: string | null;
}

const contentOf = ({ title, tiles }: Content): Content => ({ title, tiles });
const NOTHING: Wall = { id: "", title: "", revision: 0, tiles: [], changed_at: "", changed_by: null };

export const useWall = create<WallStore>(() => ({
  wall: NOTHING,
  saved: contentOf(NOTHING),
  history: past.start(contentOf(NOTHING)),
  save: { state: "saved" },
  editing: false,
  selected: null,
}));

export const current = (): Content => useWall.getState().history.present;

const DEFAULTS: readonly unknown[] = [null, "", false, "left"];

/** A content without what is as good as not there, in one order: the server adds what we left out. */
const plain = (content: Content): string =>
  JSON.stringify(contentOf(content), (_, value: unknown) => {
    if (DEFAULTS.includes(value)) return undefined;
    if (Array.isArray(value)) return value.length > 0 ? (value as unknown[]) : undefined;
    if (typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value as object).sort(([a], [b]) => (a < b ? -1 : 1)));
  });

const same = (a: Content, b: Content): boolean => a === b || plain(a) === plain(b);

/** Whether the server lacks something that is shown. */
export const pending = (): boolean => !same(current(), useWall.getState().saved);

let timer = 0;
let running: Promise<void> | null = null;

/** Shows a wall as the server has it. */
export function open(wall: Wall): void {
  const content = contentOf(wall);
  useWall.setState({ wall, saved: content, history: past.start(content), save: { state: "saved" } });
}

/** A step of the user. Changes of the same `subject` soon after each other are one step. */
export function change(next: Partial<Content>, subject: string | null = null): void {
  const { history } = useWall.getState();
  step(past.push(history, { ...history.present, ...next }, Date.now(), subject));
}

/** A new title, saved at once. Returns why the server refused it: then the old title stays. */
export async function retitle(title: string): Promise<string | null> {
  const { history } = useWall.getState();
  change({ title });
  await flush();
  const { save } = useWall.getState();
  if (save.state !== "failed") return null;
  step(history);
  return save.why;
}

export const undo = (): void => step(past.undo(useWall.getState().history));
export const redo = (): void => step(past.redo(useWall.getState().history));

function step(history: past.History<Content>): void {
  const { history: before, save } = useWall.getState();
  if (history.present === before.present) return;
  useWall.setState({ history });
  if (save.state === "conflict") return;
  useWall.setState({ save: { state: "dirty" } });
  later(QUIET_MS);
}

function later(ms: number): void {
  globalThis.clearTimeout(timer);
  timer = globalThis.setTimeout(() => void flush(), ms) as unknown as number;
}

/** Saves now what is not saved. */
export async function flush(): Promise<void> {
  globalThis.clearTimeout(timer);
  if (running) {
    await running;
    return flush();
  }
  if (useWall.getState().save.state === "conflict") return;
  if (!pending()) return useWall.setState({ save: { state: "saved" } });
  running = saveNow();
  try {
    await running;
  } finally {
    running = null;
  }
}

async function saveNow(): Promise<void> {
  const { wall } = useWall.getState();
  useWall.setState({ save: { state: "saving" } });
  try {
    const sent = current();
    taken(await put(wall, sent, false), sent);
  } catch (error) {
    failed(error);
  }
}

/** `sent`: what of ours the wall was made of. */
function taken(wall: Wall, sent: Content): void {
  useWall.setState({ wall, saved: sent });
  if (!pending()) {
    // as the server wrote it, with the names of those who wrote notes
    const content = contentOf(wall);
    const history = { ...useWall.getState().history, present: content };
    return useWall.setState({ saved: content, history, save: { state: "saved" } });
  }
  useWall.setState({ save: { state: "dirty" } });
  later(QUIET_MS);
}

function failed(error: unknown): void {
  const theirs =
    error instanceof ApiError ? (error.problem as Problem & { theirs?: Wall }).theirs : undefined;
  if (theirs && same(theirs, current())) return taken(theirs, current()); // only the answer was lost
  if (theirs) return useWall.setState({ save: { state: "conflict", theirs } });
  useWall.setState({ save: { state: "failed", why: problemText(error) } });
  // what the server refuses outright does not get better by itself
  const hopeless = error instanceof ApiError && [400, 403, 404, 409, 413, 422].includes(error.status);
  if (!hopeless) later(RETRY_MS);
}

/** Sends the wall whole; the server refuses it when somebody else has saved since `from`. */
export const put = (
  from: Pick<Wall, "id" | "revision">,
  content: Content,
  keepalive = false,
): Promise<Wall> =>
  request<Wall>("PUT", wallPath(from.id), {
    body: contentOf(content),
    headers: { "If-Match": `"${from.revision}"` },
    keepalive,
  });

/** After a conflict: ours in place of theirs, or theirs in place of ours, which undo brings back. */
export function resolve(choice: "ours" | "theirs"): void {
  const { save, history } = useWall.getState();
  if (save.state !== "conflict") return;
  const present = choice === "ours" ? history.present : contentOf(save.theirs);
  useWall.setState({
    wall: save.theirs,
    saved: contentOf(save.theirs),
    save: { state: choice === "ours" ? "dirty" : "saved" },
    history: past.push(history, present, Date.now()),
  });
  if (choice === "ours") void flush();
}

/** What somebody else has saved, shown here if nothing of ours waits. */
export async function follow(revision: number): Promise<void> {
  const { wall, save } = useWall.getState();
  if (revision <= wall.revision || save.state !== "saved" || running) return;
  const newer = await get<Wall>(wallPath(wall.id));
  const now = useWall.getState();
  if (now.save.state !== "saved" || newer.revision <= now.wall.revision) return;
  const content = contentOf(newer);
  useWall.setState({ wall: newer, saved: content, history: past.push(now.history, content, Date.now()) });
}

/** Keeps the page from going while something is not saved, and sends it on its way. */
export function guardLeaving(): void {
  window.addEventListener("beforeunload", (event) => {
    if (!pending()) return;
    event.preventDefault();
    void flush();
  });
  window.addEventListener("online", () => useWall.getState().save.state === "failed" && void flush());
}
