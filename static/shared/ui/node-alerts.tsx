import type { ClusterNode } from "../types";
import { Ago, Warning } from "./parts";

/** What the node says is wrong with itself: its disk, its checkpoints. Nothing while all is well. */
export function NodeAlerts({ node }: { node: ClusterNode }) {
  return node.alerts.map(({ message, since }) => (
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
