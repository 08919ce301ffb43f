/** "What do you want of it?": a file's averages and alarms, drawn by one answer. */
import { useReactFlow } from "@xyflow/react";
import { useState } from "react";
import { useLive } from "../../shared/live";
import { elementsOf, pipelineTitle } from "../../shared/document";
import { roleReason } from "../../shared/page";
import { wallPath } from "../../shared/wall-tiles";
import { Dialog, DialogAction } from "../../shared/ui/dialog";
import { Choice, Text } from "../../shared/ui/field";
import { useLoaded } from "../../shared/ui/parts";
import { toast, toastError } from "../../shared/ui/toast";
import { deploy } from "../deploy";
import { commit, current, useEditor } from "../store";
import { showAll } from "../view";
import { freeTitle, makeWall, tilesOf, wallList } from "./wall";
import { drawnAlready, faultOf, firstWish, made, measured, naming, type Column, type Wish } from "./wish";

const SIZES: [string, string][] = [
  ["10", "10 seconds"],
  ["60", "1 minute"],
  ["300", "5 minutes"],
  ["3600", "1 hour"],
];

interface Props {
  /** the element that plays the file */
  source: string;
  columns: readonly Column[];
  onClose: () => void;
}

export function WizardDialog({ source, columns, onClose }: Props) {
  const [wish, setWish] = useState(() => ({ ...firstWish(columns), wall: !isRead(source) }));
  const set = (more: Partial<Wish>) => setWish((old) => ({ ...old, ...more }));
  const nodes = useLive((state) => state.nodes);
  const noWall = roleReason("operator");
  const flow = useReactFlow();
  const title = pipelineTitle(current());
  const { data: walls } = useLoaded("walls of the wizard", wallList);
  const newTitle = walls && freeTitle(title, walls);
  const there = drawnAlready(current(), source, wish);
  const all = there?.all ? `${there.words} Choose something else.` : null;
  const unit = measured(columns).find(({ name }) => name === wish.column)?.unit;
  return (
    <Dialog
      open
      onClose={onClose}
      title="What do you want of it?"
      footer={
        <>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <DialogAction
            title="Draw it"
            refused={faultOf(wish) ?? all}
            run={() => {
              draw(source, { ...wish, wall: wish.wall && !noWall });
              onClose();
              // as soon as the new cards are on the canvas
              window.setTimeout(() => showAll(flow), 60);
            }}
          />
        </>
      }
    >
      <div className="stack">
        <Choice
          label="Average of"
          value={wish.column}
          options={measured(columns).map(({ name, unit }) => [name, unit ? `${name}, ${unit}` : name])}
          onChange={(column) => set({ column })}
        />
        <Choice
          label="For each"
          value={wish.by}
          options={[
            ["", "All rows together"],
            ...naming(columns).map(({ name }): [string, string] => [name, name]),
          ]}
          onChange={(by) => set({ by })}
        />
        <Choice
          label="In each"
          value={String(wish.size_s)}
          options={SIZES}
          onChange={(size) => set({ size_s: Number(size) })}
        />
        <Text
          label={`Alarm when a reading is above${unit ? `, in ${unit}` : ""}`}
          value={wish.above}
          number
          placeholder="No alarm"
          onChange={(above) => set({ above })}
        />
        <Text
          label="And stays above for, in seconds"
          value={wish.for_s}
          number
          onChange={(for_s) => set({ for_s })}
        />
        <p className="field__help">
          The alarm watches the readings themselves, not their average. Seconds and minutes are those of the
          recording, however fast it is played.
        </p>
        <Choice
          label="Runs on"
          value={wish.node}
          options={[["", "Fogline chooses"], ...nodes.map(({ name }): [string, string] => [name, name])]}
          onChange={(node) => set({ node })}
        />
        <label className="check">
          <input
            type="checkbox"
            checked={wish.wall && !noWall}
            disabled={!!noWall}
            title={noWall ?? undefined}
            onChange={(event) => set({ wall: event.target.checked })}
          />
          {newTitle && newTitle !== title ? `Show it on another wall, “${newTitle}”` : "Show it on a wall"}
        </label>
        {there && !there.all && (
          <p className="field__help">{there.words} It stays as it is, and only the rest is drawn.</p>
        )}
      </div>
    </Dialog>
  );
}

/** Whether something is drawn behind the element: then there may be a wall of it already. */
const isRead = (source: string): boolean => elementsOf(current()).some(({ inputs }) => inputs?.in === source);

/** One step of the draft, which can be undone; the wall stays. */
function draw(source: string, wish: Wish): void {
  const drawn = made(current(), source, wish);
  commit(drawn.document);
  const pipeline = useEditor.getState().name;
  const told = { tone: "done" as const, title: "It is drawn" };
  const onWay = { title: "Deploy", run: () => void deploy() };
  if (!wish.wall) {
    toast({ ...told, text: "Deploy it, and it runs.", actions: [onWay] });
    return;
  }
  makeWall(pipelineTitle(drawn.document), tilesOf(pipeline, wish, drawn))
    .then(({ id, title }) => {
      const look = { title: "Open the wall", run: () => window.location.assign(wallPath(id)) };
      const run = () => {
        onWay.run();
        toast({ ...told, text: `The wall ${title} shows it once it runs.`, actions: [look] });
      };
      toast({
        ...told,
        text: `Deploy it, and it runs. The wall ${title} shows it then.`,
        actions: [{ ...onWay, run }, look],
      });
    })
    .catch((error: unknown) => toastError("It is drawn, but its wall was not made", error));
}
