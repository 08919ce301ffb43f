import { useState } from "react";
import { migrate, nodeRefusal, refusal } from "../shared/actions";
import { useLive } from "../shared/live";
import { toastError } from "../shared/ui/toast";

/** One click does what a policy advises. It can be moved back. */
export function AdvisedMove({
  pipeline,
  element: id,
  target,
}: {
  pipeline: string;
  element: string;
  target: string;
}) {
  const [busy, setBusy] = useState(false);
  const element = useLive(({ elements }) => elements[pipeline]?.find((each) => each.id === id));
  const node = useLive(({ nodes }) => nodes.find((each) => each.name === target));
  if (!element || !node) return null;
  const refused = refusal(element.actions.migrate) ?? nodeRefusal(node, element.node);
  const run = () => {
    setBusy(true);
    migrate(pipeline, element, target, element.follow === "none" ? "stop-and-copy" : "standby")
      .catch((error: unknown) => toastError("Nothing was moved", error))
      .finally(() => setBusy(false));
  };
  return (
    <button
      className="button button--small"
      disabled={busy || !!refused}
      title={refused ?? "Live migration: output pauses for a moment, nothing is lost. You can move it back."}
      onClick={run}
    >
      Migrate to {target}
    </button>
  );
}
