import { useMemo } from "react";
import { useShallow } from "zustand/react/shallow";
import { elementPath, get } from "../../shared/api";
import { useEvents } from "../../shared/events";
import { merged } from "../../shared/handovers";
import { useLive } from "../../shared/live";
import { checkpointMark, eventMark, handoverMark, sortedMarks, type Mark } from "../../shared/marks";
import type { CheckpointNote, Handover, LiveElement } from "../../shared/types";
import { useLoaded } from "../../shared/ui/parts";
import type { CheckpointRow } from "./checkpoints";

const EVERY_MS = 60_000;
const CHECKPOINTS_EVERY_MS = 15_000;

/**
 * The handovers of an element's group, newest first: those that were loaded and those that were pushed
 * since.
 */
export function useHandoversOf(pipeline: string, element: LiveElement) {
  const group = element.group ?? element.id;
  // only the newest handovers of the whole cluster are pushed: a drain of many elements takes all their
  // places
  const query = new URLSearchParams({ pipeline, group });
  const { data, error, reload } = useLoaded(
    `handovers ${pipeline} ${group}`,
    (signal) => get<Handover[]>(`/handovers?${query}`, signal),
    EVERY_MS,
  );
  const pushed = useLive(
    useShallow((state) =>
      state.handovers.filter(
        (handover) =>
          handover.pipeline === pipeline && (handover.group === group || handover.element === element.id),
      ),
    ),
  );
  const handovers = useMemo(() => merged(data ?? [], pushed), [data, pushed]);
  return { handovers, error: data === undefined ? error : null, reload };
}

/** What happened to an element, oldest first: its group's handovers, checkpoints and faults, those of its node
 * while it is there, and the pipeline's deployments. */
export function useMarks(pipeline: string, element: LiveElement): Mark[] {
  const { handovers } = useHandoversOf(pipeline, element);
  const ofPipeline = useEvents({ pipeline });
  const ofNode = useEvents({ node: element.node ?? "" });
  const { data } = useLoaded(
    `marks checkpoints ${pipeline} ${element.id}`,
    (signal) =>
      get<{ checkpoints: CheckpointRow[] }>(`${elementPath(pipeline, element.id)}/checkpoints`, signal),
    CHECKPOINTS_EVERY_MS,
  );
  const newest = element.checkpoint;
  const own = [null, element.id, element.group];
  return useMemo(() => {
    const known = new Map((data?.checkpoints ?? []).map((row): [number, CheckpointNote] => [row.seq, row]));
    if (newest && !known.has(newest.seq)) known.set(newest.seq, newest);
    return sortedMarks([
      ...handovers.map((handover) => handoverMark(handover)),
      ...ofPipeline.filter((event) => own.includes(event.element)).map(eventMark),
      ...ofNode.filter((event) => event.pipeline === null).map(eventMark),
      ...[...known.values()].map(checkpointMark),
    ]);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [handovers, ofPipeline, ofNode, data, newest?.seq, element.id, element.group]);
}
