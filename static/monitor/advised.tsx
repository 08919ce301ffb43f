import { useState } from "react";
import { changeCopies, migrate, nodeRefusal, refusal, restore } from "../shared/actions";
import { useLive } from "../shared/live";
import { roleReason } from "../shared/page";
import type { Advice } from "../shared/policies";
import { toastError } from "../shared/ui/toast";

/** One click does what a policy advises. */
export function Advised({ pipeline, element, move_to, restore_to, site, change }: Advice) {
  if (pipeline && site && change) return <AdvisedCopies pipeline={pipeline} site={site} change={change} />;
  const target = move_to || restore_to;
  if (!pipeline || !element || !target) return null;
  return <AdvisedMove pipeline={pipeline} element={element} target={target} restores={!move_to} />;
}

/** It can be moved back. */
function AdvisedMove({
  pipeline,
  element: id,
  target,
  restores,
}: {
  pipeline: string;
  element: string;
  target: string;
  restores: boolean;
}) {
  const element = useLive(({ elements }) => elements[pipeline]?.find((each) => each.id === id));
  const node = useLive(({ nodes }) => nodes.find((each) => each.name === target));
  if (!element || !node) return null;
  const allowed = restores ? element.actions.restore : element.actions.migrate;
  return restores ? (
    <Click
      title={`Restore on ${target}`}
      says="It continues there from where it stopped. You can move it back when its node answers."
      refused={refusal(allowed) ?? nodeRefusal(node, element.node)}
      failed="Nothing was restored"
      run={() => restore(pipeline, element, { target, checkpoint: null, rewind: false })}
    />
  ) : (
    <Click
      title={`Migrate to ${target}`}
      says="A live migration: the output pauses for a moment, and nothing is lost. You can move it back."
      refused={refusal(allowed) ?? nodeRefusal(node, element.node)}
      failed="Nothing was moved"
      run={() => migrate(pipeline, element, target, element.follow === "none" ? "stop-and-copy" : "standby")}
    />
  );
}

/** This makes a version: restoring and deploying the earlier one takes it back. */
function AdvisedCopies({
  pipeline,
  site,
  change,
}: {
  pipeline: string;
  site: string;
  change: NonNullable<Advice["change"]>;
}) {
  return (
    <Click
      title={change === "copy" ? `Add the copies at ${site}` : `Take out the copies at ${site}`}
      says="The draft is changed and the running pipeline is upgraded. Deploy the earlier version to undo it."
      refused={roleReason("editor")}
      failed="Nothing was changed"
      run={() => changeCopies(pipeline, site, change)}
    />
  );
}

function Click({
  title,
  says,
  refused,
  failed,
  run,
}: {
  title: string;
  says: string;
  refused: string | null;
  failed: string;
  run: () => Promise<unknown>;
}) {
  const [busy, setBusy] = useState(false);
  const click = () => {
    setBusy(true);
    run()
      .catch((error: unknown) => toastError(failed, error))
      .finally(() => setBusy(false));
  };
  return (
    <button
      className="button button--small"
      disabled={busy || !!refused}
      title={refused ?? says}
      onClick={click}
    >
      {title}
    </button>
  );
}
