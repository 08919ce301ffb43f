/** What a tile shows: its kind, where the rows come from, which columns, and how. */
import { useState, type ReactNode } from "react";
import { Activity, ChartLine, Gauge, Table2, Type, Workflow } from "lucide-react";
import type { Tile } from "../shared/types";
import { Dialog, DialogAction } from "../shared/ui/dialog";
import { Text } from "../shared/ui/field";
import { LoadFields } from "./load-fields";
import { LOAD_S, RANGE_S } from "./series";
import { faultOf, tileOf, type Wish } from "./wish";
import { ChartFields, FigureFields, LimitFields, SourceFields, TableFields } from "./tile-fields";

const KINDS: [Tile["kind"], string, ReactNode][] = [
  ["chart", "Chart", <ChartLine key="chart" aria-hidden="true" />],
  ["figure", "Figure", <Gauge key="figure" aria-hidden="true" />],
  ["table", "Table", <Table2 key="table" aria-hidden="true" />],
  ["picture", "Pipeline", <Workflow key="picture" aria-hidden="true" />],
  ["load", "Load", <Activity key="load" aria-hidden="true" />],
  ["text", "Text", <Type key="text" aria-hidden="true" />],
];

const TITLE_MAX = 80;
const TEXT_MAX = 2000;

interface Props {
  wish: Wish;
  /** true: the tile is there already, so its kind stays */
  known: boolean;
  onDone: (tile: Tile) => void;
  onClose: () => void;
}

export function TileDialog({ wish: first, known, onDone, onClose }: Props) {
  const [wish, setWish] = useState(first);
  const set = (more: Partial<Wish>) => setWish((old) => ({ ...old, ...more }));
  const refused = faultOf(wish);
  return (
    <Dialog
      open
      onClose={onClose}
      size="m"
      title={known ? "Change the tile" : "Add a tile"}
      footer={
        <>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <DialogAction
            title={known ? "Change the tile" : "Add the tile"}
            refused={refused}
            run={() => onDone(tileOf(wish))}
          />
        </>
      }
    >
      <div className="stack">
        {!known && (
          <div className="segmented wall-kinds" role="group" aria-label="What it shows">
            {KINDS.map(([kind, title, icon]) => (
              <button
                key={kind}
                type="button"
                aria-pressed={wish.kind === kind}
                onClick={() => set({ kind, columns: [], range_s: kind === "load" ? LOAD_S : RANGE_S })}
              >
                {icon}
                {title}
              </button>
            ))}
          </div>
        )}
        {wish.kind === "load" && <LoadFields wish={wish} set={set} />}
        {wish.kind !== "text" && wish.kind !== "load" && <SourceFields wish={wish} set={set} />}
        {wish.kind === "chart" && <ChartFields wish={wish} set={set} />}
        {wish.kind === "figure" && <FigureFields wish={wish} set={set} />}
        {wish.kind === "table" && <TableFields wish={wish} set={set} />}
        {(wish.kind === "chart" || wish.kind === "figure") && <LimitFields wish={wish} set={set} />}
        {wish.kind === "text" && (
          <label className="field">
            <span className="field__label">Text</span>
            <textarea
              className="textarea"
              value={wish.text}
              maxLength={TEXT_MAX}
              autoFocus
              onChange={(event) => set({ text: event.target.value })}
            />
          </label>
        )}
        <Text
          label="Title"
          value={wish.title}
          onChange={(title) => set({ title })}
          placeholder={wish.kind === "text" ? "None" : "Made from its content"}
          maxLength={TITLE_MAX}
        />
      </div>
    </Dialog>
  );
}
