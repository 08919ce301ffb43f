import { memo } from "react";
import { BaseEdge, EdgeLabelRenderer, getBezierPath, type EdgeProps } from "@xyflow/react";
import { X } from "lucide-react";
import { count, rate } from "../shared/format";
import { useElement } from "../shared/live";
import { disconnect } from "./document";
import { commit, current, useEditor } from "./store";

/** 1.5 px for a trickle, 6 px for 100,000 rows a second. */
function thickness(perSecond: number): number {
  return 1.5 + Math.min(4.5, Math.log10(1 + Math.max(0, perSecond)) * 0.9);
}

/** Seconds of work that wait at the end of a stream, from which the badge shows. */
const QUEUE_S = 3;

export const StreamEdge = memo(function StreamEdge(props: EdgeProps) {
  const { id, source, target, targetHandleId, selected } = props;
  const live = useEditor((state) => state.mode === "live");
  const pipeline = useEditor((state) => state.name);
  const producer = useElement(pipeline, source);
  const consumer = useElement(pipeline, target);
  const [path, x, y] = getBezierPath(props);
  const flowing = live ? (producer?.rows_out_per_s ?? 0) : 0;
  const lag = live ? (consumer?.lag_rows ?? 0) : 0;
  const behind_s = lag / Math.max(1, consumer?.rows_in_per_s ?? 0);
  // within a group nothing waits: its elements take each batch together
  const inside = producer?.group != null && producer.group === consumer?.group;
  const queued = !inside && lag > 0 && behind_s >= QUEUE_S;
  return (
    <>
      <BaseEdge
        id={id}
        path={path}
        interactionWidth={18}
        className={`stream${flowing > 0 ? " stream--flowing" : ""}${selected ? " stream--selected" : ""}`}
        style={{ strokeWidth: live ? thickness(flowing) : undefined }}
      />
      <EdgeLabelRenderer>
        <div
          className="stream__label"
          style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}
        >
          {live && queued && (
            <span className="badge badge--warning num" title={`${count(lag)} rows wait for ${target}`}>
              {rate(lag)} waiting
            </span>
          )}
          {!live && selected && (
            <button
              type="button"
              className="button button--icon button--small stream__cut nodrag nopan"
              aria-label={`Remove the stream from ${source} to ${target}`}
              onClick={() => commit(disconnect(current(), { element: target, port: targetHandleId ?? "in" }))}
            >
              <X aria-hidden="true" />
            </button>
          )}
        </div>
      </EdgeLabelRenderer>
    </>
  );
});
