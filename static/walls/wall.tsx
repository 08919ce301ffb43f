/** A wall: looked at, on a whole screen too, and changed. */
import { useEffect, useRef, useState } from "react";
import {
  EllipsisVertical,
  Expand,
  Pencil,
  Plus,
  Redo2,
  Share2,
  TextCursorInput,
  Trash2,
  Undo2,
} from "lucide-react";
import { get, del } from "../shared/api";
import { mount } from "../shared/mount";
import { page, roleReason } from "../shared/page";
import type { ChartTile, Tile, Wall } from "../shared/types";
import { confirm } from "../shared/ui/confirm";
import { Frame } from "../shared/ui/frame";
import { Menu } from "../shared/ui/menu";
import { Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { toastError } from "../shared/ui/toast";
import { freeId, placed, TILES_MAX, wallPath } from "../shared/wall-tiles";
import { Board, EmptyWall } from "./board";
import { LinksDialog } from "./links-dialog";
import { NoteDialog } from "./note-dialog";
import { TileDialog } from "./tile-dialog";
import { without } from "./tiles";
import { TitleDialog } from "./title-dialog";
import { useWallState } from "./wall-state";
import {
  change,
  current,
  flush,
  follow,
  guardLeaving,
  open,
  redo,
  resolve,
  undo,
  useWall,
} from "./wall-store";
import { NO_WISH, wishOf } from "./wish";
import "./walls.css";

const id = page.wall ?? "";
const CRUMBS: [string, string][] = [["Walls", "/walls/"]];

function WallPage() {
  const { data, error, reload } = useLoaded(`wall ${id}`, async (signal) => {
    open(await get<Wall>(wallPath(id), signal));
    useWall.setState({ editing: current().tiles.length === 0 && !roleReason("operator") });
    return true;
  });
  if (!data)
    return (
      <Frame crumbs={CRUMBS} title={id}>
        {error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={4} height={120} />}
      </Frame>
    );
  return <Loaded />;
}

type Asking =
  | { kind: "tile"; tile: Tile | null }
  | { kind: "note"; tile: string; at: number | null }
  | { kind: "links" }
  | { kind: "title" };

function Loaded() {
  const { title, tiles } = useWall((state) => state.history.present);
  const editing = useWall((state) => state.editing);
  const [asking, setAsking] = useState<Asking | null>(null);
  const screen = useRef<HTMLDivElement>(null);
  const shown = useWallState(id);
  const revision = shown.received?.state.revision;
  useEffect(() => {
    if (revision !== undefined) void follow(revision).catch(() => undefined);
  }, [revision]);
  useEffect(() => {
    document.title = `${title} · Fogline`;
  }, [title]);
  useKeys(editing);
  const actions = editing
    ? {
        edit: (tile: Tile) => setAsking({ kind: "tile", tile }),
        note: (tile: ChartTile, at: number | null) => setAsking({ kind: "note", tile: tile.id, at }),
        remove: (tile: Tile) => change({ tiles: without(current().tiles, tile.id) }),
      }
    : null;
  const add = () => {
    useWall.setState({ editing: true });
    setAsking({ kind: "tile", tile: null });
  };
  return (
    <Frame
      crumbs={CRUMBS}
      title={title}
      state={<Saved />}
      actions={
        <Actions
          onAdd={add}
          onShare={() => setAsking({ kind: "links" })}
          onTitle={() => setAsking({ kind: "title" })}
          onFull={() =>
            void screen.current
              ?.requestFullscreen()
              .catch((error: unknown) =>
                toastError("The browser does not show it on the whole screen", error),
              )
          }
        />
      }
    >
      <Conflict />
      <div ref={screen} className="wall">
        {tiles.length === 0 ? (
          <EmptyWall locked={roleReason("operator")} onAdd={add} />
        ) : (
          <Board shown={shown} actions={actions} />
        )}
      </div>
      <Dialogs asking={asking} onClose={() => setAsking(null)} />
    </Frame>
  );
}

function Dialogs({ asking, onClose }: { asking: Asking | null; onClose: () => void }) {
  const tiles = useWall((state) => state.history.present.tiles);
  if (asking?.kind === "title") return <TitleDialog onClose={onClose} />;
  if (asking?.kind === "links") return <LinksDialog wall={id} onClose={onClose} />;
  if (asking?.kind === "note") {
    const tile = tiles.find((each) => each.id === asking.tile);
    if (tile?.kind !== "chart") return null;
    return (
      <NoteDialog
        tile={tile}
        at={asking.at}
        onClose={onClose}
        onChange={(annotations) => replace({ ...tile, annotations })}
      />
    );
  }
  if (asking?.kind !== "tile") return null;
  const done = (tile: Tile) => {
    if (asking.tile) replace(tile);
    else hang(tile);
    onClose();
  };
  const wish = asking.tile ? wishOf(asking.tile) : NO_WISH;
  return <TileDialog wish={wish} known={!!asking.tile} onDone={done} onClose={onClose} />;
}

const replace = (tile: Tile): void => {
  // where it lies now: it may have been moved since
  change({
    tiles: current().tiles.map((each) => (each.id === tile.id ? { ...tile, ...placeOf(each) } : each)),
  });
  void flush();
};

const placeOf = ({ x, y, w, h }: Tile) => ({ x, y, w, h });

function hang(tile: Tile): void {
  const { tiles } = current();
  change({ tiles: placed(tiles, { ...tile, id: freeId(tiles, tile.kind) }) });
  void flush();
}

function Actions({
  onAdd,
  onShare,
  onFull,
  onTitle,
}: Record<"onAdd" | "onShare" | "onFull" | "onTitle", () => void>) {
  const { past, future, present } = useWall((state) => state.history);
  const editing = useWall((state) => state.editing);
  const locked = roleReason("operator");
  const full = present.tiles.length >= TILES_MAX ? `A wall has at most ${TILES_MAX} tiles.` : null;
  const tools = [
    {
      title: "Undo",
      keys: "Control+Z",
      icon: <Undo2 aria-hidden="true" />,
      off: past.length === 0,
      run: undo,
    },
    {
      title: "Redo",
      keys: "Control+Shift+Z",
      icon: <Redo2 aria-hidden="true" />,
      off: future.length === 0,
      run: redo,
    },
  ];
  return (
    <>
      {editing &&
        tools.map((tool) => (
          <button
            key={tool.title}
            type="button"
            className="button button--quiet button--icon"
            aria-label={tool.title}
            aria-keyshortcuts={tool.keys}
            title={tool.title}
            aria-disabled={tool.off}
            onClick={tool.run}
          >
            {tool.icon}
          </button>
        ))}
      {!editing && (
        <>
          <button type="button" className="button" onClick={onFull}>
            <Expand aria-hidden="true" />
            Full screen
          </button>
          <button
            type="button"
            className="button"
            disabled={!!locked}
            title={locked ?? undefined}
            onClick={onShare}
          >
            <Share2 aria-hidden="true" />
            Share
          </button>
        </>
      )}
      {editing ? (
        <>
          <button
            type="button"
            className="button"
            disabled={!!full}
            title={full ?? undefined}
            onClick={onAdd}
          >
            <Plus aria-hidden="true" />
            Add a tile
          </button>
          <button
            type="button"
            className="button button--primary"
            onClick={() => useWall.setState({ editing: false })}
          >
            Done
          </button>
        </>
      ) : (
        <button
          type="button"
          className="button button--primary"
          disabled={!!locked}
          title={locked ?? undefined}
          onClick={() => useWall.setState({ editing: true })}
        >
          <Pencil aria-hidden="true" />
          Change
        </button>
      )}
      <More locked={locked} onTitle={onTitle} />
    </>
  );
}

function More({ locked, onTitle }: { locked: string | null; onTitle: () => void }) {
  const remove = async () => {
    const agreed = await confirm({
      title: `Delete ${current().title}?`,
      text: "The wall and its links are gone. The pipelines that it shows are not touched.",
      action: "Delete the wall",
      danger: true,
    });
    if (!agreed) return;
    try {
      await del(wallPath(id));
      window.location.assign("/walls/");
    } catch (error) {
      toastError("The wall was not deleted", error);
    }
  };
  return (
    <Menu
      trigger={
        <button type="button" className="button button--quiet button--icon" aria-label="More actions">
          <EllipsisVertical aria-hidden="true" />
        </button>
      }
      entries={[
        {
          title: "Change the title",
          icon: <TextCursorInput aria-hidden="true" />,
          disabled: locked,
          run: onTitle,
        },
        {
          title: "Delete the wall",
          icon: <Trash2 aria-hidden="true" />,
          danger: true,
          disabled: locked,
          run: () => void remove(),
        },
      ]}
    />
  );
}

function Saved() {
  const save = useWall((state) => state.save);
  const editing = useWall((state) => state.editing);
  if (save.state === "failed")
    return (
      <span className="badge badge--error" role="alert" title={save.why}>
        Not saved: {save.why}
      </span>
    );
  if (!editing && save.state === "saved") return null;
  if (save.state === "conflict") return <span className="badge badge--warning">Not saved</span>;
  return <span className="muted small">{save.state === "saved" ? "Saved" : "Saving…"}</span>;
}

function Conflict() {
  const save = useWall((state) => state.save);
  if (save.state !== "conflict") return null;
  const who = save.theirs.changed_by ?? "Somebody";
  return (
    <div className="notice notice--warning" role="alert">
      <div className="stack stack--tight">
        <span>
          {who} has changed this wall since you began. Nothing is lost yet: choose which of the two stays. The
          choice can be undone.
        </span>
        <span className="row row--wrap">
          <button type="button" className="button button--small" onClick={() => resolve("ours")}>
            Keep what I see
          </button>
          <button type="button" className="button button--small" onClick={() => resolve("theirs")}>
            Take theirs
          </button>
        </span>
      </div>
    </div>
  );
}

/** Ctrl+Z and Ctrl+Shift+Z, outside of fields and dialogs. */
function useKeys(editing: boolean): void {
  useEffect(() => {
    if (!editing) return;
    const pressed = (event: KeyboardEvent) => {
      const { target } = event;
      const typing = target instanceof Element && target.closest("input, textarea, select, [role=dialog]");
      if (typing || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
      event.preventDefault();
      if (event.shiftKey) redo();
      else undo();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [editing]);
}

guardLeaving();
mount(<WallPage />);
