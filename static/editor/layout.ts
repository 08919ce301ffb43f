import dagre from "@dagrejs/dagre";
import type { PipelineDocument } from "../shared/types";
import { elementsOf, groupOf, parseReference } from "../shared/document";
import { CARD, snap, type Point } from "./places";

/** Places from left to right along the streams; elements of a group stay together. */
export function layout(
  document: PipelineDocument,
  height: (id: string) => number = () => CARD.height,
): Record<string, Point> {
  const graph = new dagre.graphlib.Graph({ compound: true });
  graph.setGraph({ rankdir: "LR", nodesep: 36, ranksep: 72, marginx: 48, marginy: 48 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const element of elementsOf(document)) {
    graph.setNode(element.id, { width: CARD.width, height: height(element.id) });
    const group = groupOf(document, element.id);
    if (group) {
      graph.setNode(`group:${group.id}`, {});
      graph.setParent(element.id, `group:${group.id}`);
    }
  }
  for (const element of elementsOf(document)) {
    for (const reference of Object.values(element.inputs ?? {})) {
      const producer = parseReference(reference).element;
      if (graph.hasNode(producer)) graph.setEdge(producer, element.id);
    }
  }
  dagre.layout(graph);
  return Object.fromEntries(
    elementsOf(document).map(({ id }) => {
      const { x, y } = graph.node(id) as { x: number; y: number };
      return [id, snap({ x: x - CARD.width / 2, y: y - height(id) / 2 })];
    }),
  );
}
