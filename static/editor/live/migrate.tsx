import { useState } from "react";
import * as actions from "../../shared/actions";
import type { MoveWay } from "../../shared/forecast";
import { useLive } from "../../shared/live";
import { bestTarget } from "../../shared/replicas";
import { nameOf } from "../../shared/status";
import type { ClusterNode, LiveElement } from "../../shared/types";
import { Choices } from "../../shared/ui/choices";
import { OrderDialog } from "../../shared/ui/order";
import { Expect } from "./expect";
import { NodeChoice } from "./node-choice";
import { waysFor } from "./ways";

export function MigrateDialog({
  pipeline,
  element,
  onClose,
}: {
  pipeline: string;
  element: LiveElement;
  onClose: () => void;
}) {
  const name = nameOf(element);
  const refused = (node: ClusterNode) => actions.nodeRefusal(node, element.node);
  // once, when it opens: a choice must not change under somebody's eyes
  const [target, setTarget] = useState(() => bestTarget(element, useLive.getState().nodes, refused));
  const [way, setWay] = useState<MoveWay>(element.follow === "none" ? "stop-and-copy" : "standby");
  const chosen = useLive((state) => state.nodes.find((node) => node.name === target));
  const why = actions.refusal(element.actions.migrate) ?? (chosen ? refused(chosen) : "Choose a node.");
  return (
    <OrderDialog
      title={`Migrate ${name}`}
      text={`${name} runs on ${element.node ?? "its node"}. Nothing is lost or repeated, and you can move it back.${actions.groupNote(pipeline, element)}`}
      action={target ? `Migrate to ${target}` : "Migrate"}
      refused={why}
      run={() => actions.migrate(pipeline, element, target ?? "", way)}
      onClose={onClose}
    >
      <NodeChoice legend="To" element={element} value={target} refused={refused} onChange={setTarget} />
      <Choices legend="How" value={way} choices={waysFor(element, target)} onChange={setWay} />
      <Expect pipeline={pipeline} element={element} target={target} way={way} />
      {element.follow === "none" && (
        <p className="field__help">
          <b>Why other ways are not possible</b> {element.follow_note}
        </p>
      )}
    </OrderDialog>
  );
}
