/** Other ids for elements whose own were those of elements that were removed while the pipeline ran. */
import { get, request } from "../shared/api";
import { findElement } from "../shared/document";
import { listed } from "../shared/format";
import { roleReason } from "../shared/page";
import type { DeployChange, PipelineDocument, Wall, WallItem } from "../shared/types";
import { toast, toastError } from "../shared/ui/toast";
import { wallPath } from "../shared/wall-tiles";
import { renameElement } from "./edits";
import { commit, current, useEditor } from "./store";

/** Old ids and new ones. Pure. Two elements that are offered the same id do not both get it at once. */
export function newIds(document: PipelineDocument, changes: readonly DeployChange[]): Map<string, string> {
  const ids = new Map<string, string>();
  for (const { element, instead } of changes)
    if (instead && findElement(document, element) && ![...ids.values()].includes(instead))
      ids.set(element, instead);
  return ids;
}

/** A tile, or a part of one, that shows the elements of the pipeline by their new ids. Pure. */
export function withNewIds<T>(part: T, pipeline: string, ids: ReadonlyMap<string, string>): T {
  if (Array.isArray(part)) return part.map((each: unknown) => withNewIds(each, pipeline, ids)) as T;
  if (part === null || typeof part !== "object") return part;
  const own = part as Record<string, unknown>;
  const entries = Object.entries(own).map(([name, value]) => {
    const next = name === "element" && own.pipeline === pipeline ? ids.get(String(value)) : undefined;
    return [name, next ?? withNewIds(value, pipeline, ids)];
  });
  return Object.fromEntries(entries) as T;
}

/** One step of the draft, which can be undone; the tiles of walls that showed the removed elements follow. */
export async function giveNewIds(changes: readonly DeployChange[]): Promise<void> {
  const pipeline = useEditor.getState().name;
  const ids = newIds(current(), changes);
  commit([...ids].reduce((document, [id, next]) => renameElement(document, id, next), current()));
  const done = `The new ${ids.size === 1 ? "id is" : "ids are"} ${listed([...ids.values()])}.`;
  try {
    const walls = roleReason("operator") ? [] : await mendWalls(pipeline, ids);
    const shown = walls.length > 0 ? ` The tiles of ${listed(walls)} follow.` : "";
    toast({ tone: "done", title: "Deploy again", text: `${done}${shown} Each begins with an empty state.` });
  } catch (error) {
    toastError(`${done} Not all tiles of walls follow`, error);
  }
}

/** Resolves to the titles of the walls that were changed. */
async function mendWalls(pipeline: string, ids: ReadonlyMap<string, string>): Promise<string[]> {
  const changed: string[] = [];
  for (const { id } of await get<WallItem[]>("/walls")) {
    const wall = await get<Wall>(wallPath(id));
    const tiles = withNewIds(wall.tiles, pipeline, ids);
    if (JSON.stringify(tiles) === JSON.stringify(wall.tiles)) continue;
    await request<Wall>("PUT", wallPath(id), {
      body: { title: wall.title, tiles },
      headers: { "If-Match": `"${wall.revision}"` },
    });
    changed.push(wall.title);
  }
  return changed;
}
