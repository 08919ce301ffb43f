import { percent } from "../../shared/format";
import { useLive } from "../../shared/live";
import { replicaWords, standbyOn } from "../../shared/replicas";
import { loadNow } from "../../shared/status";
import type { ClusterNode, LiveElement } from "../../shared/types";
import { Choices, type Choice } from "../../shared/ui/choices";

/** All nodes with what speaks for and against each: the one place where a target is chosen. */
export function NodeChoice({
  legend,
  element,
  value,
  refused,
  onChange,
}: {
  legend: string;
  element: LiveElement;
  value: string | null;
  refused: (node: ClusterNode) => string | null;
  onChange: (node: string) => void;
}) {
  const nodes = useLive((state) => state.nodes);
  if (nodes.length < 2)
    return (
      <p className="muted small">
        There is no other node. Add a machine under <a href="/nodes/">Nodes</a>: it takes one command on that
        machine.
      </p>
    );
  const choices: Choice<string>[] = nodes.map((node) => {
    const standby = standbyOn(element, node.name);
    const { cpu_ratio } = loadNow(node);
    return {
      value: node.name,
      title: node.name,
      tag: standby ? "standby" : undefined,
      note: standby && `Its copy is ${replicaWords(standby)}.`,
      aside: cpu_ratio === undefined ? undefined : `CPU ${percent(cpu_ratio)}`,
      disabled: refused(node),
    };
  });
  return <Choices legend={legend} value={value} choices={choices} onChange={onChange} />;
}
