/** Hangs what a view shows on a wall: one click on the wall's name. */
import { LayoutDashboard, Plus } from "lucide-react";
import { get, post, request } from "../../shared/api";
import { useTitle } from "../../shared/live";
import { roleReason } from "../../shared/page";
import type { Tile, Wall, WallItem } from "../../shared/types";
import { Menu } from "../../shared/ui/menu";
import { useLoaded } from "../../shared/ui/parts";
import { toast, toastError } from "../../shared/ui/toast";
import { freeId, placed, wallPath } from "../../shared/wall-tiles";

async function hang(wall: Wall, tile: Tile): Promise<void> {
  const tiles = placed(wall.tiles, { ...tile, id: freeId(wall.tiles, tile.kind) });
  await request<Wall>("PUT", wallPath(wall.id), {
    body: { title: wall.title, tiles },
    headers: { "If-Match": `"${wall.revision}"` },
  });
  toast({
    tone: "done",
    title: `It hangs on ${wall.title}`,
    actions: [{ title: "Open the wall", run: () => window.location.assign(wallPath(wall.id)) }],
  });
}

/** `tile`: what is hung; its id and place are found there. */
export function AddToWall({ pipeline, tile }: { pipeline: string; tile: Tile }) {
  const locked = roleReason("operator");
  const title = useTitle(pipeline);
  const { data = [], reload } = useLoaded("walls", (signal) => get<WallItem[]>("/walls", signal));
  const run = (wall: () => Promise<Wall>) =>
    void wall()
      .then((found) => hang(found, tile))
      .then(reload)
      .catch((error: unknown) => toastError("It was not added to the wall", error));
  return (
    <Menu
      trigger={
        <button type="button" className="button button--quiet button--small" aria-label="Add to a wall">
          <LayoutDashboard aria-hidden="true" />
          Add to a wall
        </button>
      }
      entries={[
        ...data.map((wall) => ({
          title: wall.title,
          disabled: locked,
          run: () => run(() => get<Wall>(wallPath(wall.id))),
        })),
        ...(data.length > 0 ? ["line" as const] : []),
        {
          title: `A new wall, ${title}`,
          icon: <Plus aria-hidden="true" />,
          disabled: locked,
          run: () => run(() => post<Wall>("/walls", { title })),
        },
      ]}
    />
  );
}
