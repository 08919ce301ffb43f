/** A tile: its name, how old it is, and what it shows. */
import { useRef, type ReactNode } from "react";
import { BellRing, Clock, EllipsisVertical, MessageSquarePlus, Pencil, Trash2 } from "lucide-react";
import { exact, plural } from "../shared/format";
import { LOADS } from "../shared/load-charts";
import type {
  ChartTile,
  FigureTile,
  LoadTile,
  PictureTile,
  TableTile,
  TextTile,
  Tile,
  TileState,
} from "../shared/types";
import { Menu } from "../shared/ui/menu";
import { ageOf, ageWords, type Age } from "./age";
import { ChartBody, chartGap } from "./chart-tile";
import { useTileCurves } from "./curves";
import { LoadBody } from "./load-tile";
import { useRoom } from "./room";
import { seriesName } from "./series";
import { FigureBody, PictureBody, TextBody } from "./small-tiles";
import { TableBody } from "./table-tile";
import { useTileState } from "./wall-state";
import { useWall } from "./wall-store";

export interface TileActions {
  edit: (tile: Tile) => void;
  /** a note on a chart, at a time if one was clicked: ms since the epoch */
  note: (tile: ChartTile, at: number | null) => void;
  remove: (tile: Tile) => void;
}

interface Props<T extends Tile> {
  tile: T;
  /** null: it is only looked at */
  actions: TileActions | null;
}

export function TileCard({ tile, actions }: Props<Tile>) {
  if (tile.kind === "chart") return <ChartCard tile={tile} actions={actions} />;
  if (tile.kind === "load") return <LoadCard tile={tile} actions={actions} />;
  if (tile.kind === "table" || tile.kind === "picture") return <RoomyCard tile={tile} actions={actions} />;
  return <PlainCard tile={tile} actions={actions} />;
}

function PlainCard({ tile, actions }: Props<FigureTile | TextTile>) {
  const { state, now } = useTileState(tile.id);
  const every = state?.figure?.every_s;
  const age = ageOf(state?.sources ?? [], every == null ? null : 1000 * every, now);
  return (
    <Frame tile={tile} actions={actions} age={age} state={state}>
      {tile.kind === "figure" ? <FigureBody tile={tile} state={state} /> : <TextBody tile={tile} />}
    </Frame>
  );
}

function RoomyCard({ tile, actions }: Props<TableTile | PictureTile>) {
  const { state, now } = useTileState(tile.id);
  const place = useRef<HTMLDivElement>(null);
  const room = useRoom(place);
  const shown = { state, room };
  return (
    <Frame tile={tile} actions={actions} age={ageOf(state?.sources ?? [], null, now)} state={state}>
      <div ref={place} className={`wall-${tile.kind}`}>
        {room.height > 0 &&
          (tile.kind === "table" ? (
            <TableBody tile={tile} {...shown} />
          ) : (
            <PictureBody tile={tile} {...shown} />
          ))}
      </div>
    </Frame>
  );
}

function ChartCard({ tile, actions }: Props<ChartTile>) {
  const saved = useWall((state) => state.wall.tiles.find(({ id }) => id === tile.id));
  const curves = useTileCurves(saved?.kind === "chart" ? saved : undefined);
  const { state, now } = useTileState(tile.id);
  const place = useRef<HTMLDivElement>(null);
  const room = useRoom(place);
  return (
    <Frame
      tile={tile}
      actions={actions}
      age={ageOf(state?.sources ?? [], chartGap(curves), now)}
      state={state}
    >
      <div ref={place} className="wall-chart">
        {room.height > 0 && (
          <ChartBody
            tile={tile}
            state={state}
            curves={curves}
            room={room}
            onPick={actions ? (at) => actions.note(tile, at) : undefined}
          />
        )}
      </div>
    </Frame>
  );
}

function LoadCard({ tile, actions }: Props<LoadTile>) {
  const { state } = useTileState(tile.id);
  const place = useRef<HTMLDivElement>(null);
  const room = useRoom(place);
  return (
    <Frame tile={tile} actions={actions} age={null} state={state}>
      <div ref={place} className="wall-chart">
        {room.height > 0 && <LoadBody tile={tile} state={state} room={room} />}
      </div>
    </Frame>
  );
}

/** What people call a tile: its title, else what it shows. */
export function tileName(tile: Tile, state: TileState | undefined): string {
  if (tile.title) return tile.title;
  const titles = new Map(state?.sources.map((each) => [`${each.pipeline}/${each.element}`, each.title]));
  const [first] = tile.kind === "chart" ? tile.series : [];
  // its curves have the names of machines and the like: the element says of what
  if (first?.by && tile.kind === "chart" && tile.series.length === 1)
    return titles.get(`${first.pipeline}/${first.element}`) ?? first.element;
  if (tile.kind === "chart")
    return tile.series.map((each) => seriesName(each, tile.series, titles)).join(", ");
  if (tile.kind === "figure") return seriesName(tile.series, [tile.series], titles);
  if (tile.kind === "load")
    return `${LOADS[tile.figure].title} of ${tile.node || (state?.sources[0]?.title ?? tile.element)}`;
  if (tile.kind === "table") return state?.sources[0]?.title ?? tile.element;
  return tile.kind === "picture" ? (state?.picture?.title ?? tile.pipeline) : "";
}

interface FrameProps extends Props<Tile> {
  /** null: what it shows is no row */
  age: Age | null;
  state: TileState | undefined;
  children: ReactNode;
}

function Frame({ tile, actions, age, state, children }: FrameProps) {
  const name = tileName(tile, state);
  const problems = [...new Set(state?.sources.flatMap(({ problem }) => problem ?? []))];
  const aged = age?.aged || problems.length > 0;
  const bare = tile.kind === "text" && !tile.title && !actions;
  return (
    <article
      className="wall-tile"
      data-kind={tile.kind}
      data-aged={aged}
      data-alarm={state?.alarm ?? undefined}
      aria-label={name || "Text"}
    >
      {!bare && (
        <header className="wall-tile__head">
          <h2 className="wall-tile__name" title={name}>
            {name}
          </h2>
          {state?.alarm && (
            <span className="wall-tile__alarm" title={`It has an active ${state.alarm} alarm`}>
              <BellRing aria-label={`active ${state.alarm} alarm`} />
            </span>
          )}
          {age && (age.ms !== null || problems.length === 0) && <AgeMark age={age} state={state} />}
          {actions && <TileMenu tile={tile} name={name} actions={actions} />}
        </header>
      )}
      {problems.map((problem) => (
        <p key={problem} className="wall-tile__problem">
          {problem}
        </p>
      ))}
      <div className="wall-tile__body">{children}</div>
    </article>
  );
}

function AgeMark({ age, state }: { age: Age; state: TileState | undefined }) {
  if (!state || state.sources.length === 0) return null;
  if (age.ms === null) return <span className="wall-age">no row yet</span>;
  const since = Math.min(...state.sources.map(({ last_row_at }) => Date.parse(last_row_at ?? "")));
  const words = ageWords(age.ms);
  return (
    <span className="wall-age num" data-aged={age.aged} title={`Newest row: ${exact(since)}`}>
      {age.aged && <Clock aria-hidden="true" />}
      {age.aged ? `no row for ${words}` : words}
    </span>
  );
}

function TileMenu({ tile, name, actions }: { tile: Tile; name: string; actions: TileActions }) {
  const notes = tile.kind === "chart" ? (tile.annotations?.length ?? 0) : 0;
  return (
    <Menu
      trigger={
        // it must not begin to drag the tile
        <button
          type="button"
          className="button button--quiet button--icon button--small wall-tile__menu"
          aria-label={`Actions of ${name || "this text"}`}
        >
          <EllipsisVertical aria-hidden="true" />
        </button>
      }
      entries={[
        { title: "Change", icon: <Pencil aria-hidden="true" />, run: () => actions.edit(tile) },
        ...(tile.kind === "chart"
          ? [
              {
                title: notes > 0 ? `Notes (${plural(notes, "note")})` : "Add a note",
                icon: <MessageSquarePlus aria-hidden="true" />,
                run: () => actions.note(tile, null),
              },
            ]
          : []),
        "line" as const,
        {
          title: "Remove",
          icon: <Trash2 aria-hidden="true" />,
          danger: true,
          run: () => actions.remove(tile),
        },
      ]}
    />
  );
}
