/** What is marked in the charts of nodes. */
import { useMemo } from "react";
import { useShallow } from "zustand/react/shallow";
import { get } from "../shared/api";
import { useEvents } from "../shared/events";
import { merged } from "../shared/handovers";
import { useLive } from "../shared/live";
import { nameIn } from "../shared/live-reducer";
import { eventMark, handoverMark, sortedMarks, type Mark } from "../shared/marks";
import type { ClusterNode, Handover, LogEvent } from "../shared/types";
import { useLoaded } from "../shared/ui/parts";

const EVERY_MS = 60_000;

/** The newest of the whole cluster, as marks; what they are of is named. */
function useHandoverMarks(concerns: (handover: Handover) => boolean): Mark[] {
  const { data } = useLoaded("marks handovers", (signal) => get<Handover[]>("/handovers", signal), EVERY_MS);
  const pushed = useLive((state) => state.handovers);
  const handovers = useMemo(() => merged(data ?? [], pushed).filter(concerns), [data, pushed, concerns]);
  const names = useLive(
    useShallow((state) => handovers.map((each) => nameIn(state.elements, each.pipeline, each.element))),
  );
  return useMemo(
    () => handovers.map((handover, index) => handoverMark(handover, names[index])),
    [handovers, names],
  );
}

/**
 * What happened to a node: moves to it or away from it, its faults and those of its elements, and their
 * deployments.
 */
export function useNodeMarks(node: ClusterNode): Mark[] {
  const { name } = node;
  const concerns = useMemo(
    () =>
      ({ origin, target }: Handover) =>
        origin === name || target === name,
    [name],
  );
  const handovers = useHandoverMarks(concerns);
  const ofNode = useEvents({ node: name });
  const ofPipelines = useEvents({ kind: "pipeline" });
  const here = [...new Set(node.elements.map((element) => element.pipeline))].sort().join("\n");
  return useMemo(() => {
    const pipelines = new Set(here.split("\n"));
    const runsHere = ({ pipeline }: LogEvent) => pipeline !== null && pipelines.has(pipeline);
    return sortedMarks([
      ...handovers,
      ...ofNode.map(eventMark),
      ...ofPipelines.filter(runsHere).map(eventMark),
    ]);
  }, [handovers, ofNode, ofPipelines, here]);
}

const all = () => true;
/** What happened to any node. */
export function useClusterMarks(): Mark[] {
  const handovers = useHandoverMarks(all);
  const ofPipelines = useEvents({ kind: "pipeline" });
  const ofNodes = useEvents({ kind: "node" });
  const ofElements = useEvents({ kind: "element" });
  const ofReplicas = useEvents({ kind: "replica" });
  return useMemo(
    () =>
      sortedMarks([
        ...handovers,
        ...[...ofPipelines, ...ofNodes, ...ofElements, ...ofReplicas].map(eventMark),
      ]),
    [handovers, ofPipelines, ofNodes, ofElements, ofReplicas],
  );
}
