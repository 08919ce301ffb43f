/** Around the canvas in lanes: the switch, the moves under way in their order, and what a screen reader hears. */
import { memo, useEffect, useMemo, useRef } from "react";
import { Panel, useReactFlow } from "@xyflow/react";
import { Columns3, Waypoints, X } from "lucide-react";
import { activePhase, phaseWords } from "../../shared/handovers";
import { useElements, useLive } from "../../shared/live";
import { mayAct } from "../../shared/page";
import { pauseTold } from "../../shared/pause";
import type { Handover } from "../../shared/types";
import { useEditor } from "../store";
import { showReadably } from "../view";
import type { Lane } from "./layout";
import { HangingPanel } from "./hanging";
import { clearMoves, leaveOut, useMoves, type Move } from "./moves";
import { arrangeInLanes, useLanes } from "./store";

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

/** Not drawn again with each frame of a drag. */
export const LanePanels = memo(function LanePanels({ lanes }: { lanes: readonly Lane[] }) {
  const live = useEditor((state) => state.mode === "live");
  return (
    <>
      <Panel position="top-right" className="lane-panels">
        <HangingPanel lanes={lanes} />
        {live && <MoveList />}
      </Panel>
      <Announcer />
    </>
  );
});

const STATES: Record<Move["state"], string> = {
  waits: "waits",
  moving: "begins",
  done: "done",
  failed: "failed",
  cancelled: "cancelled",
  "left out": "not moved, since the one before it did not end as ordered",
};

/** The moves that were ordered together, in their order. One alone is told at its card. */
function MoveList() {
  const moves = useMoves((state) => state.moves);
  const handovers = useLive((state) => state.handovers);
  if (moves.length < 2) return null;
  const waiting = moves.some(({ state }) => state === "waits");
  const over = moves.every(({ state }) => state !== "waits" && state !== "moving");
  return (
    <section className="move-list" aria-label="Moves in their order">
      <header className="row row--between">
        <h2 className="hanging__title">{over ? "Moved" : "Moving one after another"}</h2>
        {over && (
          <button
            type="button"
            className="button button--quiet button--icon button--small"
            aria-label="Close the list of moves"
            onClick={clearMoves}
          >
            <X aria-hidden="true" />
          </button>
        )}
      </header>
      <ol>
        {moves.map((move) => (
          <li key={`${move.element} ${move.target}`} data-state={move.state}>
            <b>{move.title}</b> to {move.target}:{" "}
            {wordsOf(
              move,
              handovers.find(({ id }) => id === move.handover),
            )}
          </li>
        ))}
      </ol>
      {waiting && (
        <>
          <p className="hanging__note">
            This page orders these moves. Keep it open until the last one has begun.
          </p>
          <button type="button" className="button button--small" onClick={leaveOut}>
            Leave out those that wait
          </button>
        </>
      )}
    </section>
  );
}

function wordsOf(move: Move, handover: Handover | undefined): string {
  if (!handover) return STATES[move.state];
  const row = activePhase(handover);
  if (row) return phaseWords(handover, row);
  return handover.outcome === "done" ? `done, pause ${pauseTold(handover).value}` : STATES[move.state];
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
    if (newest.outcome === "done")
      return `${name} runs on ${newest.target}. Pause: ${pauseTold(newest).value}.`;
    return `${name} was not moved: ${newest.message}`;
  }, [newest, elements]);
  return (
    <div className="visually-hidden" role="status" aria-label="Moves">
      {text}
    </div>
  );
}
