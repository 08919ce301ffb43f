import { alertsNow } from "../status";
import type { ClusterNode } from "../types";
import { Ago, Warning } from "./parts";

/** What the node says is wrong with itself: its disk, its checkpoints. Nothing while all is well, or
 * while nobody knows. */
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
