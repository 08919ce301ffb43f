/** The tiles on their grid: dragged and sized by mouse and finger, moved by keyboard too. */
import { useEffect, useMemo, useState, type KeyboardEvent, type RefObject } from "react";
import GridLayout, { useContainerWidth, verticalCompactor, type Layout } from "react-grid-layout";
import type { Tile } from "../shared/types";
import { COLUMNS } from "../shared/wall-tiles";
import { Afar } from "./room";
import { TileCard, type TileActions } from "./tile";
import { arranged, extentOf, inOrder, layoutOf, placeWords, resized, stepped, without } from "./tiles";
import { change, current, useWall } from "./wall-store";
import "./grid.css";

// with an element of this id, react-draggable adds no style of its own: grid.css has it
const mark = document.createElement("template");
mark.id = "react-draggable-style-el";
document.head.append(mark);

/** Below this width tiles stand one below the other, px. */
const PHONE_PX = 640;
/** A row is so much of a column high: a wall keeps its shape on any screen. */
const ROW = { share: 0.75, least: 30 };
const MARGIN = 8;
/** Around the tiles of a full screen, px, as walls.css has it. */
const EDGE = 16;

const WHOLE = window.matchMedia("(display-mode: fullscreen)");

/** Whether the wall fills a whole screen: by its button; or by the browser, for whoever has a link to it. */
const isWhole = (): boolean =>
  document.fullscreenElement !== null || (WHOLE.matches && document.querySelector(".wall--shared") !== null);

/** The height below the top of `place` on a whole screen, px; null while it fills none. */
function useScreen(place: RefObject<HTMLElement | null>): number | null {
  const [height, setHeight] = useState<number | null>(null);
  useEffect(() => {
    const look = () => {
      const top = place.current?.getBoundingClientRect().top;
      setHeight(isWhole() && top !== undefined ? window.innerHeight - top - EDGE : null);
    };
    look();
    document.addEventListener("fullscreenchange", look);
    WHOLE.addEventListener("change", look);
    window.addEventListener("resize", look);
    return () => {
      document.removeEventListener("fullscreenchange", look);
      WHOLE.removeEventListener("change", look);
      window.removeEventListener("resize", look);
    };
  }, [place]);
  return height;
}

export function WallGrid({ tiles, actions }: { tiles: readonly Tile[]; actions: TileActions | null }) {
  const { width, containerRef, mounted } = useContainerWidth();
  const layout = useMemo(() => layoutOf(tiles), [tiles]);
  const screen = useScreen(containerRef);
  // a screen in a hall is filled: it is read from afar
  const { columns, rows } = extentOf(tiles);
  const phone = width < PHONE_PX;
  const filled = screen !== null && !actions && !phone && tiles.length > 0;
  const column = width / COLUMNS;
  const row_px = filled ? (screen + MARGIN) / rows - MARGIN : column * ROW.share - MARGIN;
  return (
    <div ref={containerRef} className="wall-grid" data-editing={!!actions} data-afar={filled}>
      <Afar value={filled}>
        {mounted && phone && (
          <div className="wall-grid__column">
            {inOrder(tiles).map((tile) => (
              <Placed key={tile.id} tile={tile} actions={actions} />
            ))}
          </div>
        )}
        {mounted && !phone && (
          <GridLayout
            width={width}
            layout={layout}
            compactor={verticalCompactor}
            gridConfig={{
              cols: filled ? columns : COLUMNS,
              rowHeight: Math.max(ROW.least, Math.floor(row_px)),
              margin: [MARGIN, MARGIN],
              containerPadding: [0, 0],
            }}
            dragConfig={{ enabled: !!actions, handle: ".wall-tile__head", cancel: ".wall-tile__menu" }}
            resizeConfig={{ enabled: !!actions, handles: ["se"] }}
            onDragStop={keep}
            onResizeStop={keep}
          >
            {tiles.map((tile) => (
              <div key={tile.id}>
                <Placed tile={tile} actions={actions} />
              </div>
            ))}
          </GridLayout>
        )}
      </Afar>
    </div>
  );
}

function keep(layout: Layout): void {
  const { tiles } = current();
  const next = arranged(tiles, layout);
  if (next !== tiles) change({ tiles: next });
}

const STEPS = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" } as const;

/** By keyboard: arrows move it, with Shift they size it, Enter changes it, Delete removes it. */
function useKeys(tile: Tile, actions: TileActions | null) {
  return (event: KeyboardEvent<HTMLElement>) => {
    if (!actions || event.target !== event.currentTarget) return;
    const step = STEPS[event.key as keyof typeof STEPS];
    const { tiles } = current();
    if (step) {
      const next = (event.shiftKey ? resized : stepped)(tiles, tile.id, step);
      if (next !== tiles) change({ tiles: next }, `place ${tile.id}`);
    } else if (event.key === "Enter") actions.edit(tile);
    else if (event.key === "Delete") change({ tiles: without(tiles, tile.id) });
    else return;
    event.preventDefault();
  };
}

function Placed({ tile, actions }: { tile: Tile; actions: TileActions | null }) {
  const onKeyDown = useKeys(tile, actions);
  const moved = actions && {
    role: "group",
    tabIndex: 0,
    "aria-label": `Tile ${tile.title || tile.id}, ${placeWords(tile)}. Arrow keys move it, with Shift they change its size.`,
    "aria-keyshortcuts": "ArrowLeft ArrowRight ArrowUp ArrowDown Enter Delete",
    onKeyDown,
    onFocus: () => useWall.setState({ selected: tile.id }),
  };
  // the same place whether it is changed or not: a tile keeps what it shows
  return (
    <div className="wall-grid__place" {...moved}>
      <TileCard tile={tile} actions={actions} />
    </div>
  );
}
