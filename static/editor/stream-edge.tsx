import { memo, useMemo, useState } from "react";
import { BaseEdge, EdgeLabelRenderer, getBezierPath, ViewportPortal, type EdgeProps } from "@xyflow/react";
import { X } from "lucide-react";
import { useShallow } from "zustand/react/shallow";
import { count, rate } from "../shared/format";
import { useElement } from "../shared/live";
import { nameOfId } from "../shared/document";
import { disconnect } from "./edits";
import { edgeFigures } from "./live/queue-words";
import { passesId, type FlowNode, type StreamEdge as Stream } from "./flow";
import { isWrongAt, wordsAt } from "./passing/checked";
import { useLanes } from "./lanes/store";
import { CARD, type Point } from "./places";
import { commit, current, isEditable, useEditor } from "./store";

/** 1.5 px for a trickle, 6 px for 100,000 rows a second. */
function thickness(perSecond: number): number {
  return 1.5 + Math.min(4.5, Math.log10(1 + Math.max(0, perSecond)) * 0.9);
}

/** Seconds of work that wait at the end of a stream, from which the badge shows. */
const QUEUE_S = 3;

export const StreamEdge = memo(function StreamEdge(props: EdgeProps<Stream>) {
  const { id, source, target, targetHandleId, selected } = props;
  const mark = props.data?.mark;
  const live = useEditor((state) => state.mode === "live");
  const editable = useEditor(isEditable);
  const pipeline = useEditor((state) => state.name);
  const producer = useElement(pipeline, source);
  const consumer = useElement(pipeline, target);
  const names = useEditor(
    useShallow(({ history, operators }) =>
      [source, target].map((end) => nameOfId(history.present, operators, end)),
    ),
  );
  const end = { element: target, port: targetHandleId ?? "in" };
  const passes = useEditor((state) => wordsAt(state, { side: "in", ...end }));
  const wrong = useEditor((state) => isWrongAt(state, end));
  const [path, x, y] = getBezierPath(props);
  const flowing = live ? (producer?.rows_out_per_s ?? 0) : 0;
  const lag = live ? (consumer?.lag_rows ?? 0) : 0;
  const behind_s = lag / Math.max(1, consumer?.rows_in_per_s ?? 0);
  // within a group nothing waits: its elements take each batch together
  const inside = producer?.group != null && producer.group === consumer?.group;
  const queued = !inside && lag > 0 && behind_s >= QUEUE_S;
  const [pointed, setPointed] = useState(false);
  const tells = live && (pointed || selected);
  return (
    <g onMouseEnter={() => setPointed(true)} onMouseLeave={() => setPointed(false)}>
      <desc id={passesId(id)}>{passes}</desc>
      <BaseEdge
        id={id}
        path={path}
        interactionWidth={18}
        className={`stream${flowing > 0 ? " stream--flowing" : ""}${wrong ? " stream--wrong" : ""}${selected ? " stream--selected" : ""}${mark ? ` stream--${mark} diff--${mark}` : ""}`}
        style={{ strokeWidth: live ? thickness(flowing) : undefined }}
      />
      {mark && (
        <EdgeLabelRenderer>
          <span
            className={`stream__mark diff--${mark}`}
            style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}
            aria-hidden="true"
          />
        </EdgeLabelRenderer>
      )}
      {tells && (
        <EdgeLabelRenderer>
          <div
            className="stream__figures num"
            style={{ transform: `translate(-50%, 8px) translate(${x}px, ${y}px)` }}
          >
            {edgeFigures(producer, inside ? null : consumer).join(" · ")}
            {inside && " · run as one"}
          </div>
        </EdgeLabelRenderer>
      )}
      {(live ? queued : selected && editable) && (
        <EdgeLabelRenderer>
          <div
            className="stream__label"
            style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}
          >
            {live ? (
              <span
                className="badge badge--warning num"
                title={`${count(lag)} rows wait for ${consumer?.title ?? target}`}
              >
                {rate(lag)} waiting
              </span>
            ) : (
              <button
                type="button"
                className="button button--icon button--small stream__cut nodrag nopan"
                aria-label={`Remove the stream from ${names[0]} to ${names[1]}`}
                onClick={() => commit(disconnect(current(), end))}
              >
                <X aria-hidden="true" />
              </button>
            )}
          </div>
        </EdgeLabelRenderer>
      )}
    </g>
  );
});

/** All streams as one line: seen from afar, hundreds of drawings of their own would make panning jerk. */
export function PlainStreams({ nodes, edges }: { nodes: readonly FlowNode[]; edges: readonly Stream[] }) {
  const { still, held } = useMemo(() => plainLines(nodes, edges), [nodes, edges]);
  const lines = useMemo(() => pathsOf(still), [still]);
  return (
    <ViewportPortal>
      <svg className="plain-streams" aria-hidden="true">
        {lines}
      </svg>
      {held.length > 0 && <HeldStreams lines={held} />}
    </ViewportPortal>
  );
}

/** The streams of cards that are dragged, in a picture of their own: a browser paints the whole of a picture again,
    however little of it is another. */
function HeldStreams({ lines }: { lines: readonly Line[] }) {
  const carried = useLanes((state) => state.carried);
  return (
    <svg className="plain-streams plain-streams--held" aria-hidden="true">
      {pathsOf(lines, carried)}
    </svg>
  );
}

/** The cards at both ends of a stream. */
interface Line {
  from: FlowNode;
  to: FlowNode;
  mark: Mark;
}

type Mark = NonNullable<Stream["data"]>["mark"];

function plainLines(nodes: readonly FlowNode[], edges: readonly Stream[]) {
  const places = new Map(nodes.map((node) => [node.id, node]));
  const still: Line[] = [];
  const held: Line[] = [];
  for (const { source, target, data } of edges) {
    const [from, to] = [places.get(source), places.get(target)];
    if (from && to) (isHeld(from) || isHeld(to) ? held : still).push({ from, to, mark: data?.mark });
  }
  return { still, held };
}

/** The later ones lie over the others. */
const MARKS: readonly [Mark, string | undefined][] = [
  [undefined, undefined],
  ["added", "stream--added diff--added"],
  ["removed", "stream--removed diff--removed"],
];

const pathsOf = (lines: readonly Line[], carried: Point | null = null) =>
  MARKS.map(([mark, className]) => {
    const own = lines.filter((line) => line.mark === mark);
    return (
      <path key={mark ?? ""} className={className} d={own.map((line) => curve(line, carried)).join("")} />
    );
  });

/** `carried`: how far held cards are from their places. */
function curve({ from, to }: Line, carried: Point | null): string {
  const place = (node: FlowNode): Point => {
    const by = carried && isHeld(node) ? carried : { x: 0, y: 0 };
    return { x: node.position.x + by.x, y: node.position.y + (node.measured?.height ?? 0) / 2 + by.y };
  };
  const [{ x, y: y1 }, { x: x2, y: y2 }] = [place(from), place(to)];
  const x1 = x + CARD.width;
  const bend = Math.max(24, (x2 - x1) / 2);
  return `M${x1},${y1}C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
}

const isHeld = (node: FlowNode): boolean => node.dragging === true || node.className === "hangs";
