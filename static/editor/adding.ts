/** Elements that are added without a pointer. */
import { useCallback } from "react";
import type { Operator, PipelineDocument, StreamSchema } from "../shared/types";
import type { Mend } from "./columns";
import { judge } from "./connect";
import { findElement, type PortRef } from "../shared/document";
import { connect } from "./edits";
import { CARD, type Point } from "./places";
import { tellRefusal } from "./refusal";
import { addElement, useEditor } from "./store";
import { canvasBox, focusCard, type Flow } from "./view";
import { useReactFlow } from "@xyflow/react";

/** Between two cards of one row. */
const BESIDE = CARD.width + 88;

/** A stream, or why it would not fit although the ports do. */
type Fitting = { ends: [PortRef, PortRef] } | { reason: string; mends: Mend[] };

/**
 * The stream that a new element of `operator` makes with the selected one: it reads the selected one's
 * output, else feeds its first free input; null: neither is possible.
 */
export function fittingStream(
  document: PipelineDocument,
  operators: ReadonlyMap<string, Operator>,
  selected: string,
  added: { id: string; operator: Operator },
  schemas: Readonly<Record<string, StreamSchema>> = {},
): Fitting | null {
  const element = findElement(document, selected);
  const operator = element && operators.get(element.type);
  if (!element || !operator) return null;
  const free = operator.inputs.find((port) => !element.inputs?.[port.name]);
  const ways: [string | undefined, string | undefined, string, string][] = [
    [operator.outputs[0]?.name, added.operator.inputs[0]?.name, selected, added.id],
    [added.operator.outputs[0]?.name, free?.name, added.id, selected],
  ];
  for (const [output, input, from, to] of ways) {
    if (!output || !input) continue;
    const ends: [PortRef, PortRef] = [
      { element: from, port: output },
      { element: to, port: input },
    ];
    // nothing is known yet about the output of the new element
    const verdict = judge(document, operators, ...ends, from === selected ? schemas : {});
    return verdict.ok ? { ends } : { reason: verdict.reason, mends: verdict.mends };
  }
  return null;
}

/** Adds beside the selected element and connects both where they fit, or says why not; else in the view's middle. */
export function useAddByKey(): (type: string) => string | null {
  const flow = useReactFlow();
  return useCallback((type) => addBeside(flow, type), [flow]);
}

function addBeside(flow: Flow, type: string): string | null {
  const { selected, nodes, operators, schemas } = useEditor.getState();
  const operator = operators.get(type);
  if (!operator) return null;
  const chosen = selected.size === 1 ? nodes.find((node) => selected.has(node.id)) : undefined;
  const at = chosen ? beside(chosen.position, operator) : middle(flow);
  const id = addElement(type, at, (document, added) => {
    const fitting = chosen && fittingStream(document, operators, chosen.id, { id: added, operator }, schemas);
    if (!fitting) return document;
    if ("ends" in fitting) return connect(document, ...fitting.ends);
    tellRefusal(fitting.reason, fitting.mends);
    return document;
  });
  if (!id) return null;
  focusCard(id);
  return id;
}

/** A source goes before what it may feed, all else after what it may read. */
const beside = ({ x, y }: Point, operator: Operator): Point => ({
  x: x + (operator.inputs.length > 0 ? BESIDE : -BESIDE),
  y,
});

function middle(flow: Flow): Point {
  const box = canvasBox();
  const { x, y, zoom } = flow.getViewport();
  return {
    x: (box.width / 2 - x) / zoom - CARD.width / 2,
    y: (box.height / 2 - y) / zoom - CARD.height / 2,
  };
}
