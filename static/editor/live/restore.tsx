import { useState } from "react";
import * as actions from "../../shared/actions";
import { useLive } from "../../shared/live";
import { bestTarget, hotStandby, standbyOn } from "../../shared/replicas";
import { nameOf } from "../../shared/status";
import type { ClusterNode, LiveElement } from "../../shared/types";
import { Choices } from "../../shared/ui/choices";
import { OrderDialog } from "../../shared/ui/order";
import { Warning } from "../../shared/ui/parts";
import { placesOf, useCheckpoints, type CheckpointRow } from "./checkpoints";
import { NodeChoice } from "./node-choice";
import { checkpointWords, REWIND, sourcesFor, type Source } from "./ways";

export function RestoreDialog({
  pipeline,
  element,
  checkpoint,
  onClose,
}: {
  pipeline: string;
  element: LiveElement;
  /** seq of the one to begin with; null: the best source there is */
  checkpoint: number | null;
  onClose: () => void;
}) {
  const name = nameOf(element);
  const nodes = useLive((state) => state.nodes);
  const hot = hotStandby(element, nodes);
  const { rows } = useCheckpoints(pipeline, element.id);
  const refused = (node: ClusterNode) => actions.nodeRefusal(node, node.up ? element.node : null);
  const [source, setSource] = useState<Source>(
    checkpoint !== null ? "older" : hot ? "hot-standby" : "newest",
  );
  const [picked, setSeq] = useState(checkpoint);
  const [picked_node, setTarget] = useState(() => bestTarget(element, nodes, refused));
  const older = source === "rewind" ? rows : rows.slice(1);
  const seq = source === "older" || source === "rewind" ? (picked ?? older[0]?.seq ?? null) : null;
  const target = source === "hot-standby" ? (hot?.node ?? null) : picked_node;
  const rewind = source === "rewind";
  const node = nodes.find((each) => each.name === target);
  const why =
    actions.refusal(rewind ? element.actions.rewind : element.actions.restore) ??
    (source === "hot-standby" && !hot
      ? "The standby does not follow any more: choose a checkpoint."
      : null) ??
    ((source === "older" || rewind) && seq === null ? "Choose a checkpoint." : null) ??
    (node ? refused(node) : "Choose a node.");
  const order = {
    target,
    // on a standby's node, only a named checkpoint says that the standby is not meant
    checkpoint: source === "newest" && target && standbyOn(element, target) ? (rows[0]?.seq ?? null) : seq,
    rewind,
  };
  const rewindRefused =
    actions.refusal(element.actions.rewind) ?? (rows.length ? null : "No checkpoint yet.");
  return (
    <OrderDialog
      title={rewind ? `Rewind ${name}` : `Restore ${name}`}
      text={
        rewind
          ? `${name} goes back to a checkpoint and computes again from there.${actions.groupNote(pipeline, element)}`
          : `${name} starts elsewhere and takes over where it had committed: what was written is not written again. ${actions.noteOf(element.actions.restore) || `Its copy on ${element.node ?? "the old node"}, should it still run, is shut out.`}${actions.groupNote(pipeline, element)}`
      }
      action={
        rewind
          ? `Rewind to ${seq ?? "a checkpoint"}${target ? ` on ${target}` : ""}`
          : `Restore${target ? ` on ${target}` : ""}`
      }
      danger={rewind}
      refused={why}
      run={() => actions.restore(pipeline, element, order)}
      onClose={onClose}
    >
      <Choices
        legend="From"
        value={rewind ? null : source}
        choices={sourcesFor(hot, rows)}
        onChange={setSource}
      />
      <Choices
        legend="Or, on purpose"
        value={rewind ? "rewind" : null}
        choices={[{ ...REWIND, disabled: rewindRefused }]}
        onChange={setSource}
      />
      {(source === "older" || rewind) && (
        <CheckpointChoice rows={older} value={seq} onChange={setSeq} legend="Checkpoint" />
      )}
      {rewind && seq !== null && (
        <Warning>
          <b>Outputs committed since seq {seq} will be emitted again, under a new epoch.</b>{" "}
          {actions.noteOf(element.actions.rewind)} This cannot be undone.
        </Warning>
      )}
      {source !== "hot-standby" && (
        <NodeChoice legend="On" element={element} value={target} refused={refused} onChange={setTarget} />
      )}
    </OrderDialog>
  );
}

function CheckpointChoice({
  legend,
  rows,
  value,
  onChange,
}: {
  legend: string;
  rows: readonly CheckpointRow[];
  value: number | null;
  onChange: (seq: number) => void;
}) {
  return (
    <label className="field">
      <span className="field__label">{legend}</span>
      <select
        className="select"
        value={value ?? ""}
        onChange={(event) => onChange(Number(event.target.value))}
      >
        {rows.map((row) => (
          <option key={row.seq} value={row.seq}>
            {checkpointWords(row)}, at {placesOf(row)}
          </option>
        ))}
      </select>
    </label>
  );
}
