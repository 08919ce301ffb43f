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
import { CARD } from "./places";
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
  const paths = useMemo(() => pathsOf(nodes, edges), [nodes, edges]);
  return (
    <ViewportPortal>
      <svg className="plain-streams" aria-hidden="true">
        {Object.entries(paths).map(([part, path]) => (
          <path key={part} d={path} className={CLASSES[part as Part]} />
        ))}
      </svg>
    </ViewportPortal>
  );
}

/** The later ones lie over the others. */
type Part = "still" | "held" | "added" | "removed";

const CLASSES: Record<Part, string | undefined> = {
  still: undefined,
  held: undefined,
  added: "stream--added diff--added",
  removed: "stream--removed diff--removed",
};

/** While a card is dragged only its own streams change: a browser draws a whole path again, however little of it
    is another. */
function pathsOf(nodes: readonly FlowNode[], edges: readonly Stream[]): Record<Part, string> {
  const places = new Map(nodes.map((node) => [node.id, node]));
  const paths = { still: "", held: "", added: "", removed: "" };
  for (const { source, target, data } of edges) {
    const [from, to] = [places.get(source), places.get(target)];
    if (!from || !to) continue;
    const [x1, y1] = [from.position.x + CARD.width, from.position.y + (from.measured?.height ?? 0) / 2];
    const [x2, y2] = [to.position.x, to.position.y + (to.measured?.height ?? 0) / 2];
    const bend = Math.max(24, (x2 - x1) / 2);
    const part = data?.mark ?? (isHeld(from) || isHeld(to) ? "held" : "still");
    paths[part] += `M${x1},${y1}C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
  }
  return paths;
}

const isHeld = (node: FlowNode): boolean => node.dragging === true || node.className === "hangs";
