/** Cards and streams of the canvas, with what lanes add to them. */
import { memo, useContext, createContext } from "react";
import { EdgeLabelRenderer, ViewportPortal, type EdgeProps, type NodeProps } from "@xyflow/react";
import { Undo2, X } from "lucide-react";
import { cancelHandover, moveBack, moveBackRefusal } from "../../shared/actions";
import { useNow } from "../../shared/clock";
import { latency, rate } from "../../shared/format";
import { afterCancel, cancelRefusal, shortPhase, wayBack } from "../../shared/handovers";
import { useElement, useElements, useLive, useNode } from "../../shared/live";
import { roleReason } from "../../shared/page";
import { pauseTold } from "../../shared/pause";
import { mayRun, nameOf } from "../../shared/status";
import type { Handover, MapLink, QueuedMove } from "../../shared/types";
import { Tip } from "../../shared/ui/parts";
import { ElementCard } from "../card";
import type { CardNode, StreamEdge as Stream } from "../flow";
import { StreamEdge } from "../stream-edge";
import { useEditor } from "../store";
import type { Thread } from "./arranged";
import { lastMove, underWay } from "./lies";
import { lineMs } from "./lines";
import { cancelWaiting, placeWords } from "./moves";

/** The lines between sites; empty while they are not known. */
export const LinesContext = createContext<readonly MapLink[]>([]);

/** How long the pause of a move stands on its card. */
const SHOWN_MS = 10 * 60_000;

export const LaneCard = memo(function LaneCard(props: NodeProps<CardNode>) {
  return (
    <>
      <ElementCard {...props} />
      {props.data.live && <MoveStrip id={props.id} />}
    </>
  );
});

/** Below the card: its place while it waits, cancel while it moves, afterwards the pause that was measured and the way back. */
function MoveStrip({ id }: { id: string }) {
  const pipeline = useEditor((state) => state.name);
  const element = useElement(pipeline, id);
  const moving = useLive((state) => (element ? underWay(state.handovers, pipeline, element) : undefined));
  const last = useLive((state) => (element ? lastMove(state.handovers, pipeline, element) : undefined));
  const fresh = useNow((now) => !!last?.ended_at && now - Date.parse(last.ended_at) < SHOWN_MS);
  const waits = useLive((state) =>
    state.moves.find((move) => move.element === id && move.pipeline === pipeline && move.state === "waits"),
  );
  if (!element) return null;
  if (waits) return <WaitStrip move={waits} name={nameOf(element)} />;
  if (moving) return moving.element === id ? <CancelStrip handover={moving} name={nameOf(element)} /> : null;
  if (!last || last.outcome !== "done" || !fresh || last.element !== id || element.node !== last.target)
    return null;
  const told = pauseTold(last);
  return (
    <div className="move-strip num nodrag nopan">
      <Tip text={told.why}>
        <span className="ellipsis" tabIndex={0}>
          {told.note ? (
            "No row waited longer"
          ) : (
            <>
              Pause <b>{told.value}</b>
            </>
          )}
        </span>
      </Tip>
      <BackLink handover={last} id={id} />
    </div>
  );
}

function WaitStrip({ move, name }: { move: QueuedMove; name: string }) {
  const words = placeWords(move, useElements(move.pipeline));
  const refused = roleReason("operator");
  return (
    <div className="move-strip nodrag nopan">
      <Tip text={`${words}. To ${move.target}.`}>
        <span className="ellipsis" tabIndex={0}>
          {words}
        </span>
      </Tip>
      <Tip text={refused ?? "It stays where it is, and the moves after it are made"}>
        <button
          type="button"
          className="link"
          aria-disabled={!!refused}
          aria-label={`Cancel the move of ${name}`}
          onClick={() => !refused && void cancelWaiting(move.pipeline, move.id)}
        >
          <X aria-hidden="true" /> Cancel
        </button>
      </Tip>
    </div>
  );
}

function CancelStrip({ handover, name }: { handover: Handover; name: string }) {
  const origin = useNode(handover.origin);
  const after = afterCancel(handover, name, !!origin && mayRun(origin));
  const refused = roleReason("operator") ?? cancelRefusal(handover);
  return (
    <div className="move-strip nodrag nopan">
      <Tip text={refused ?? after}>
        <button
          type="button"
          className="link"
          aria-disabled={!!refused}
          aria-label={`Cancel the move of ${name}`}
          onClick={() => !refused && void cancelHandover(handover, after)}
        >
          <X aria-hidden="true" /> Cancel
        </button>
      </Tip>
    </div>
  );
}

function BackLink({ handover, id }: { handover: Handover; id: string }) {
  const pipeline = useEditor((state) => state.name);
  const element = useElement(pipeline, id);
  const node = useNode(handover.origin);
  const back = wayBack(handover, element);
  if (!back || !element) return null;
  const refused = moveBackRefusal(element, node);
  return (
    <Tip
      text={
        refused ?? (back.instant ? `${back.target} still follows, so nothing is copied` : `To ${back.target}`)
      }
    >
      <button
        type="button"
        className="link"
        aria-disabled={!!refused}
        aria-label={`Move back ${nameOf(element)} to ${back.target}`}
        onClick={() => !refused && void moveBack(pipeline, element, back)}
      >
        <Undo2 aria-hidden="true" /> Move back
      </button>
    </Tip>
  );
}

/** A stream; between two lanes with how much flows, and the latency of the line between their sites. */
export const LaneStream = memo(function LaneStream(props: EdgeProps<Stream>) {
  return (
    <>
      <StreamEdge {...props} />
      <AcrossLabel {...props} />
    </>
  );
});

function AcrossLabel(props: EdgeProps<Stream>) {
  const live = useEditor((state) => state.mode === "live");
  const pipeline = useEditor((state) => state.name);
  const [from, to] = [useElement(pipeline, props.source), useElement(pipeline, props.target)];
  const sites = [useNode(from?.node ?? "")?.site, useNode(to?.node ?? "")?.site];
  const lines = useContext(LinesContext);
  if (!live || !from?.node || !to?.node || from.node === to.node) return null;
  const ms = lineMs(lines, sites[0], sites[1]);
  const far = ms === null ? "" : ` · ${latency(ms)}`;
  const place = { x: props.sourceX + 34, y: props.sourceY + (props.targetY > props.sourceY ? 16 : -16) };
  return (
    <EdgeLabelRenderer>
      <span
        className="across num"
        style={{ transform: `translate(-50%, -50%) translate(${place.x}px, ${place.y}px)` }}
        title={`From ${from.node} to ${to.node}${ms === null ? "" : `, a line of ${latency(ms)}`}`}
      >
        {rate(from.rows_out_per_s)}/s{far}
      </span>
    </EdgeLabelRenderer>
  );
}

/** From what moves to what has arrived of it, with the phase, and from a dead node to where its elements went. */
export const Threads = memo(function Threads({ threads }: { threads: readonly Thread[] }) {
  if (threads.length === 0) return null;
  return (
    <ViewportPortal>
      <svg className="threads" aria-hidden="true">
        <marker id="thread-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="4" orient="auto">
          <path d="M0,0L8,4L0,8z" fill="context-stroke" />
        </marker>
        {threads.map(({ id, from, to, handover }) => (
          <path
            key={id}
            data-arrived={handover === null}
            d={`M${from.x},${from.y}L${to.x},${to.y}`}
            markerEnd="url(#thread-arrow)"
          />
        ))}
      </svg>
      {threads.map(
        ({ id, from, to, handover }) =>
          handover && (
            <span
              key={id}
              className="threads__phase"
              style={{
                transform: `translate(-50%, -50%) translate(${(from.x + to.x) / 2}px, ${(from.y + to.y) / 2}px)`,
              }}
            >
              {shortPhase(handover)}
            </span>
          ),
      )}
    </ViewportPortal>
  );
});
