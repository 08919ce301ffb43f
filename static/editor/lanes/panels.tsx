/** Around the canvas: the switch to lanes, the queue of moves, and what a screen reader hears of them. */
import { memo, useEffect, useMemo, useRef, useState } from "react";
import { Panel, useReactFlow } from "@xyflow/react";
import { Columns3, Waypoints, X } from "lucide-react";
import { useShallow } from "zustand/react/shallow";
import { listed } from "../../shared/format";
import { activePhase, phaseWords } from "../../shared/handovers";
import { useElements, useLive } from "../../shared/live";
import { mayAct, roleReason } from "../../shared/page";
import { pauseLine } from "../../shared/pause";
import type { Handover, LiveElement, QueuedMove } from "../../shared/types";
import { Tip } from "../../shared/ui/parts";
import { useEditor } from "../store";
import { showReadably } from "../view";
import type { Lane } from "./layout";
import { HangingPanel } from "./hanging";
import { cancelWaiting, placesTold, placeWords, titleOf } from "./moves";
import { arrangeInLanes, useLanes } from "./store";
import "./panels.css";

/** Chooses how the canvas is arranged. */
export const ArrangementSwitch = memo(function ArrangementSwitch() {
  const on = useLanes((state) => state.on);
  const flow = useReactFlow();
  const live = useEditor((state) => state.mode === "live");
  const seen = useRef(false); // the canvas itself begins as drawn
  useEffect(() => {
    if (seen.current !== on) window.setTimeout(() => showReadably(flow), 60);
    seen.current = on;
  }, [on, flow]);
  const may = mayAct(live ? "operator" : "editor");
  return (
    <Panel position="top-left" className="arrangement">
      <div className="segmented" role="group" aria-label="Arrangement">
        <button type="button" aria-pressed={!on} onClick={() => arrangeInLanes(false)}>
          <Waypoints aria-hidden="true" />
          As drawn
        </button>
        <button type="button" aria-pressed={on} onClick={() => arrangeInLanes(true)}>
          <Columns3 aria-hidden="true" className="arrangement__lanes" />
          Lanes
        </button>
      </div>
      {on && may && (
        <span className="arrangement__hint">
          {live
            ? "Drag an element to another lane to move it while it runs, or press M."
            : "Drag an element to a lane to pin it there at the next Deploy."}
        </span>
      )}
    </Panel>
  );
});

/** Not drawn again with each frame of a drag. `lanes`: null when the canvas is arranged as drawn. */
export const LanePanels = memo(function LanePanels({ lanes }: { lanes: readonly Lane[] | null }) {
  const live = useEditor((state) => state.mode === "live");
  return (
    <>
      <Panel position="top-right" className="lane-panels">
        {lanes && <HangingPanel lanes={lanes} />}
        {live && <MoveList />}
      </Panel>
      {lanes && <Announcer />}
      {live && <PlacesAnnouncer />}
    </>
  );
});

const STATES: Record<QueuedMove["state"], string> = {
  waits: "waits",
  moving: "begins",
  done: "done",
  failed: "failed",
  cancelled: "cancelled",
  "left-out": "stays, since the one before it did not move",
};

/** The queue of the pipeline, for whoever looks at it. A move alone is told at its card. */
function MoveList() {
  const pipeline = useEditor((state) => state.name);
  const elements = useElements(pipeline);
  const moves = useLive(useShallow((state) => state.moves.filter((move) => move.pipeline === pipeline)));
  const handovers = useLive((state) => state.handovers);
  const [closed, close] = useState(0);
  const newest = moves.at(-1);
  if (moves.length < 2 || !newest || newest.id <= closed) return null;
  const waiting = moves.filter(({ state }) => state === "waits");
  const over = moves.every(({ ended_at }) => ended_at !== null);
  const refused = roleReason("operator");
  const people = [...new Set(moves.map(({ created_by }) => created_by ?? "somebody who is gone"))];
  return (
    <section className="move-list" aria-label="Moves in their order">
      <header className="row row--between">
        <h2 className="hanging__title">{over ? "Moved" : "Moving one after another"}</h2>
        <button
          type="button"
          className="button button--quiet button--icon button--small"
          aria-label="Close the list of moves"
          title="Close the list. The moves continue"
          onClick={() => close(newest.id)}
        >
          <X aria-hidden="true" />
        </button>
      </header>
      <ol>
        {moves.map((move) => (
          <li key={move.id} data-state={move.state}>
            <b>{titleOf(elements, move.element)}</b> to {move.target}:{" "}
            {wordsOf(
              move,
              elements,
              handovers.find(({ id }) => id === move.handover),
            )}
          </li>
        ))}
      </ol>
      <p className="hanging__note">
        Ordered by {listed(people)}.
        {waiting.length > 0 && " Each begins when the one before it is done, also when this page is closed."}
      </p>
      {waiting.length > 0 && (
        <Tip text={refused ?? "The present move continues"}>
          <button
            type="button"
            className="button button--small"
            aria-disabled={!!refused}
            onClick={() => !refused && void cancelWaiting(pipeline)}
          >
            Cancel {waiting.length === 1 ? "the one that waits" : `the ${waiting.length} that wait`}
          </button>
        </Tip>
      )}
    </section>
  );
}

function wordsOf(move: QueuedMove, elements: readonly LiveElement[], handover: Handover | undefined): string {
  if (move.state === "waits") return placeWords(move, elements);
  const row = handover && activePhase(handover);
  if (row) return phaseWords(handover, row);
  if (handover?.outcome === "done") return `done. ${pauseLine(handover)}`;
  if (move.state === "failed") return handover?.message || move.message || "failed";
  return STATES[move.state];
}

/** Tells each phase of this pipeline's handovers to screen readers. */
function Announcer() {
  const pipeline = useEditor((state) => state.name);
  const elements = useElements(pipeline);
  const newest = useLive((state) => state.handovers.find((each) => each.pipeline === pipeline));
  const begun = useRef(Date.now());
  const text = useMemo(() => {
    if (!newest || Date.parse(newest.ended_at ?? newest.created_at) < begun.current - 5000) return "";
    const name = elements.find(({ id }) => id === newest.element)?.title ?? newest.element;
    const row = activePhase(newest);
    if (row) return `${name}: ${phaseWords(newest, { ...row, behind: null })}.`;
    if (newest.outcome === "done") return `${name} runs on ${newest.target}. ${pauseLine(newest)}.`;
    return `${name} was not moved: ${newest.message}`;
  }, [newest, elements]);
  return (
    <div className="visually-hidden" role="status" aria-label="Moves">
      {text}
    </div>
  );
}

/** Tells screen readers the place of each move that waits, whenever one changes. */
function PlacesAnnouncer() {
  const pipeline = useEditor((state) => state.name);
  const elements = useElements(pipeline);
  const moves = useLive(useShallow((state) => state.moves.filter((move) => move.pipeline === pipeline)));
  return (
    <div className="visually-hidden" role="status" aria-label="Places in the queue">
      {placesTold(moves, elements)}
    </div>
  );
}
