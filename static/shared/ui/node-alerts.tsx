import { alertsNow } from "../status";
import type { ClusterNode } from "../types";
import { Ago, Warning } from "./parts";

/**
 * The alerts of a node about its disk or its checkpoints. Nothing is shown when all is well or nothing is
 * known.
 */
export function NodeAlerts({ node }: { node: ClusterNode }) {
  return alertsNow(node).map(({ message, since }) => (
    <Warning key={message}>
      <div className="stack stack--tight">
        <span>
          {node.name}: {message}
        </span>
        <span className="muted small">
          since <Ago at={since} />
        </span>
      </div>
    </Warning>
  ));
}
