import { useState } from "react";
import * as actions from "../../shared/actions";
import { exact } from "../../shared/format";
import { useLive } from "../../shared/live";
import { bestTarget, hotStandby, standbyOn } from "../../shared/replicas";
import { nameOf } from "../../shared/status";
import type { ClusterNode, LiveElement } from "../../shared/types";
import { Choices } from "../../shared/ui/choices";
import { OrderDialog } from "../../shared/ui/order";
import { Problem, Skeleton, Warning } from "../../shared/ui/parts";
import { placesOf, useCheckpoints, type CheckpointRow, type CheckpointState } from "./checkpoints";
import { Expect } from "./expect";
import { NodeChoice } from "./node-choice";
import {
  checkpointWords,
  goneWords,
  pickFor,
  REWIND,
  rowsFor,
  sourcesFor,
  unknownWords,
  wayOf,
  type Source,
} from "./ways";

/** What is chosen in the dialog, and why it cannot be ordered. */
function useChoice(element: LiveElement, checkpoint: number | null, checkpoints: CheckpointState) {
  const nodes = useLive((state) => state.nodes);
  const refused = (node: ClusterNode) => actions.nodeRefusal(node, node.up ? element.node : null);
  const refusedAt = (at: string | null) => {
    const node = nodes.find((each) => each.name === at);
    return node ? refused(node) : "Choose a node.";
  };
  const hot = hotStandby(element, nodes, refused);
  const hotRefused = hot && refusedAt(hot.node);
  const named = checkpoint !== null;
  const { rows } = checkpoints;
  const unknown = unknownWords(checkpoints);
  const [source, setSource] = useState<Source>(
    named ? "older" : hot && !hotRefused ? "hot-standby" : "newest",
  );
  const [picked, setPicked] = useState(checkpoint);
  const [pickedNode, setTarget] = useState(() => bestTarget(element, nodes, refused));
  const choose = (next: Source) => {
    setSource(next);
    setPicked(pickFor(rowsFor(next, rows, named), picked));
  };
  const rewind = source === "rewind";
  const listed = rowsFor(source, rows, named);
  const target = source === "hot-standby" ? (hot?.node ?? null) : pickedNode;
  // on a standby's node, only a named checkpoint says that the standby is not meant
  const pastStandby = source === "newest" && target !== null && !!standbyOn(element, target);
  const seq = (pastStandby ? rows[0] : listed.find((row) => row.seq === picked))?.seq ?? null;
  const needsSeq = pastStandby || rewind || source === "older";
  const why =
    actions.refusal(rewind ? element.actions.rewind : element.actions.restore) ??
    (source === "hot-standby" && !hot ? "The standby no longer follows: choose a checkpoint." : null) ??
    (needsSeq && seq === null ? (unknown ?? goneWords(rows, picked)) : null) ??
    refusedAt(target);
  const known = { hotRefused, unknown, named };
  return { hot, known, source, choose, listed, setPicked, seq, target, setTarget, refused, why };
}

export function RestoreDialog({
  pipeline,
  element,
  checkpoint,
  onClose,
}: {
  pipeline: string;
  element: LiveElement;
  /** seq of the checkpoint to start with; null for the best source */
  checkpoint: number | null;
  onClose: () => void;
}) {
  const name = nameOf(element);
  const checkpoints = useCheckpoints(pipeline, element.id);
  const { rows } = checkpoints;
  const choice = useChoice(element, checkpoint, checkpoints);
  const { source, seq, target, listed } = choice;
  const { unknown } = choice.known;
  const rewind = source === "rewind";
  const rewindRefused =
    actions.refusal(element.actions.rewind) ??
    unknown ??
    (rows.length ? null : "There is no checkpoint yet.");
  return (
    <OrderDialog
      title={rewind ? `Rewind ${name}` : `Restore ${name}`}
      text={
        rewind
          ? `${name} goes back to a checkpoint and computes again from there.${actions.groupNote(pipeline, element)}`
          : `${name} starts on another node and continues after its last commit: nothing is written twice. ${actions.noteOf(element.actions.restore) || `If its copy on ${element.node ?? "the old node"} still runs, it is locked out.`}${actions.groupNote(pipeline, element)}`
      }
      action={rewind ? `Rewind${target ? ` on ${target}` : ""}` : `Restore${target ? ` on ${target}` : ""}`}
      danger={rewind}
      refused={choice.why}
      run={() => actions.restore(pipeline, element, { target, checkpoint: seq, rewind })}
      onClose={onClose}
    >
      <Choices
        legend="From"
        value={rewind ? null : source}
        choices={sourcesFor(choice.hot, rows, choice.known)}
        onChange={choice.choose}
      />
      <Choices
        legend="Or go back on purpose"
        value={rewind ? "rewind" : null}
        choices={[{ ...REWIND, disabled: rewindRefused }]}
        onChange={choice.choose}
      />
      {checkpoints.loading && <Skeleton lines={1} />}
      {unknown && checkpoints.error ? (
        <Problem error={checkpoints.error} onRetry={checkpoints.reload} />
      ) : null}
      {listed.length > 0 && <CheckpointChoice rows={listed} value={seq} onChange={choice.setPicked} />}
      {rewind && seq !== null && (
        <Warning>
          <b>
            What it has written since {exact(listed.find((row) => row.seq === seq)?.at)} is written again.
          </b>{" "}
          {actions.noteOf(element.actions.rewind)} This cannot be undone.
        </Warning>
      )}
      {source !== "hot-standby" && (
        <NodeChoice
          legend="On"
          element={element}
          value={target}
          refused={choice.refused}
          onChange={choice.setTarget}
        />
      )}
      <Expect pipeline={pipeline} element={element} target={target} way={wayOf(source)} />
    </OrderDialog>
  );
}

function CheckpointChoice({
  rows,
  value,
  onChange,
}: {
  rows: readonly CheckpointRow[];
  value: number | null;
  onChange: (seq: number) => void;
}) {
  return (
    <label className="field">
      <span className="field__label">Checkpoint</span>
      <select
        className="select"
        value={value ?? ""}
        onChange={(event) => onChange(Number(event.target.value))}
      >
        {value === null && <option value="">Choose one</option>}
        {rows.map((row) => (
          <option key={row.seq} value={row.seq}>
            {checkpointWords(row)}, at {placesOf(row)}
          </option>
        ))}
      </select>
    </label>
  );
}
