import { useState } from "react";
import { ShieldCheck, ShieldOff } from "lucide-react";
import * as actions from "../../shared/actions";
import { FOLLOW } from "../../shared/follow";
import { listed } from "../../shared/format";
import { kindWords } from "../../shared/handovers";
import { useLive } from "../../shared/live";
import { pauseTold } from "../../shared/pause";
import { bestTarget, replicaWords, sortedReplicas, standbyNodes } from "../../shared/replicas";
import { nameOf } from "../../shared/status";
import type { ClusterNode, Handover, LiveElement } from "../../shared/types";
import { Details, TermWord } from "../../shared/ui/details";
import { HandoverMark } from "../../shared/ui/handover";
import { OrderDialog } from "../../shared/ui/order";
import { Ago, Problem, StatusMark } from "../../shared/ui/parts";
import { ActionButton } from "./action-button";
import { useHandoversOf } from "./marks";
import { NodeChoice } from "./node-choice";
import { Nothing } from "./records";

/** The owner and the standbys: which of them could take over, how soon, and the actions on them. */
export function Replicas({ pipeline, element }: { pipeline: string; element: LiveElement }) {
  const [asking, setAsking] = useState(false);
  const { standby } = element;
  const nodes = standbyNodes(element);
  return (
    <div className="stack">
      <ReplicaTable element={element} />
      <div className="drawer__actions" role="group" aria-label="Standby">
        <ActionButton
          title={standby?.wanted ? "Keep it elsewhere" : "Keep a standby"}
          icon={<ShieldCheck aria-hidden="true" />}
          disabled={actions.refusal(element.actions.keep_standby)}
          run={() => setAsking(true)}
        />
        {standby && (
          <ActionButton
            title={`Drop the ${nodes.length > 1 ? "standbys" : "standby"} on ${listed(nodes)}`}
            icon={<ShieldOff aria-hidden="true" />}
            disabled={actions.refusal(element.actions.drop_standby)}
            run={() => void actions.dropStandbys(pipeline, element)}
          />
        )}
      </div>
      {standby && !standby.wanted && (
        <p className="field__help">
          {standby.node} stays a standby for a while after the move, so that you can move back instantly. Keep
          it to make it permanent.
        </p>
      )}
      <FollowNote element={element} />
      <ReplicaDetails element={element} />
      {asking && <StandbyDialog pipeline={pipeline} element={element} onClose={() => setAsking(false)} />}
    </div>
  );
}

function ReplicaTable({ element }: { element: LiveElement }) {
  const { standby } = element;
  const replicas = sortedReplicas(element);
  const awaited = standby && !replicas.some((replica) => replica.node === standby.node);
  if (replicas.length === 0 && !awaited) return <Nothing text="No node has reported a replica yet." />;
  return (
    <div className="table-wrap">
      <table className="table table--tight">
        <thead>
          <tr>
            <th>Node</th>
            <th>Role</th>
            <th>State</th>
          </tr>
        </thead>
        <tbody>
          {replicas.map((replica) => (
            <tr key={replica.node}>
              <td>
                <a href={`/nodes/${encodeURIComponent(replica.node)}`}>{replica.node}</a>
              </td>
              <td>
                <StatusMark status={replica.role} />
              </td>
              <td className="muted">{replicaWords(replica)}</td>
            </tr>
          ))}
          {awaited && (
            <tr>
              <td>{standby.node}</td>
              <td>
                <StatusMark status="standby" />
              </td>
              <td className="muted">ordered; nothing reported yet</td>
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}

/** How far each replica is, by the numbers that the nodes' logs have. */
function ReplicaDetails({ element }: { element: LiveElement }) {
  const replicas = sortedReplicas(element);
  if (replicas.length === 0) return null;
  return (
    <Details>
      <div className="table-wrap">
        <table className="table table--tight">
          <thead>
            <tr>
              <th>Node</th>
              <th className="num">
                <TermWord term="epoch" />
              </th>
              <th className="num">
                <TermWord term="seq" />
              </th>
            </tr>
          </thead>
          <tbody>
            {replicas.map((replica) => (
              <tr key={replica.node}>
                <td>{replica.node}</td>
                <td className="num">{replica.epoch}</td>
                <td className="num">{replica.seq}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Details>
  );
}

/** What `follow` means for this element, for readers who know the data but not the runtime. */
function FollowNote({ element }: { element: LiveElement }) {
  const words = FOLLOW[element.follow];
  return (
    <p className="field__help">
      <b>{words.title}.</b> {element.follow_note || words.text}
    </p>
  );
}

export function StandbyDialog({
  pipeline,
  element,
  onClose,
}: {
  pipeline: string;
  element: LiveElement;
  onClose: () => void;
}) {
  const name = nameOf(element);
  const kept = element.standby?.wanted ? element.standby.node : null;
  const refused = (node: ClusterNode) =>
    node.name === kept ? "This node keeps the standby already." : actions.nodeRefusal(node, element.node);
  const [target, setTarget] = useState(() => bestTarget(element, useLive.getState().nodes, refused));
  const chosen = useLive((state) => state.nodes.find((node) => node.name === target));
  const why = actions.refusal(element.actions.keep_standby) ?? (chosen ? refused(chosen) : "Choose a node.");
  return (
    <OrderDialog
      title={`Keep a standby of ${name}`}
      text={`A standby computes the same without emitting anything, so that it can take over at once: in a live migration, or automatically when ${element.node ?? "the owner's node"} fails. It needs about as much CPU and memory as ${name} itself.${kept ? ` The standby on ${kept} is dropped.` : ""}${actions.groupNote(pipeline, element)}`}
      action={target ? `Keep a standby on ${target}` : "Keep a standby"}
      refused={why}
      run={() => actions.keepStandby(pipeline, element, target ?? "")}
      onClose={onClose}
    >
      <NodeChoice legend="On" element={element} value={target} refused={refused} onChange={setTarget} />
    </OrderDialog>
  );
}

export function PastHandovers({ pipeline, element }: { pipeline: string; element: LiveElement }) {
  const { handovers, error, reload } = useHandoversOf(pipeline, element);
  const unknown = error !== null && error !== undefined;
  if (handovers.length === 0 && !unknown) return null;
  return (
    <section className="stack stack--tight drawer__section">
      <h3 className="section-title">Handovers</h3>
      {unknown ? <Problem error={error} onRetry={reload} /> : null}
      {handovers.length > 0 && <HandoverTable handovers={handovers} />}
    </section>
  );
}

function PauseCell({ handover }: { handover: Handover }) {
  const { value, why, known } = pauseTold(handover);
  return (
    <td className="num" title={why}>
      {known ? value : "–"}
    </td>
  );
}

function HandoverTable({ handovers }: { handovers: Handover[] }) {
  return (
    <div className="table-wrap">
      <table className="table table--tight">
        <thead>
          <tr>
            <th>What</th>
            <th>To</th>
            <th>Outcome</th>
            <th className="num">Pause</th>
            <th>When</th>
          </tr>
        </thead>
        <tbody>
          {handovers.map((handover) => (
            <tr key={handover.id}>
              <td>
                <a href={`/handovers/${encodeURIComponent(handover.id)}`}>{kindWords(handover)}</a>
              </td>
              <td className="muted" title={handover.origin ? `from ${handover.origin}` : undefined}>
                {handover.target}
              </td>
              <td>
                <HandoverMark handover={handover} />
              </td>
              <PauseCell handover={handover} />
              <td className="muted">
                <Ago at={handover.created_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
