import { useState } from "react";
import { Plus, Scale } from "lucide-react";
import { livePage, takeNew } from "../shared/address";
import { del, get, patch } from "../shared/api";
import { mount } from "../shared/mount";
import { roleReason } from "../shared/page";
import { adviceOf, codeWords, doneWords, notable, policySentence, sitesNow } from "../shared/policies";
import type { Decision, Policy, Standing } from "../shared/types";
import { confirm } from "../shared/ui/confirm";
import { Ago, Problem, Skeleton, StatusMark, useLoaded } from "../shared/ui/parts";
import { toast, toastError } from "../shared/ui/toast";
import { Advised } from "./advised";
import { Frame, Section } from "../shared/ui/frame";
import { PolicyForm } from "./policy-form";
import "./monitor.css";

const ASKED = takeNew();
const LOG_LINES = 100;

function PoliciesPage() {
  const {
    data: policies,
    error,
    reload,
  } = useLoaded("policies", (signal) => get<Policy[]>("/policies", signal), 5000);
  const [form, setForm] = useState<Policy | "new" | null>(ASKED && !roleReason("operator") ? "new" : null);
  const locked = roleReason("operator");
  const add = (
    <button
      className="button button--primary"
      disabled={!!locked}
      title={locked ?? undefined}
      onClick={() => setForm("new")}
    >
      <Plus aria-hidden="true" />
      New policy
    </button>
  );
  return (
    <Frame title="Policies" actions={add}>
      {!policies && (error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={3} height={64} />)}
      {policies?.length === 0 && (
        <div className="card empty">
          <Scale aria-hidden="true" />
          <h2>No policies yet</h2>
          <p>
            A policy says when elements move: when a node's CPU is too busy, its battery runs down or it must
            be empty for maintenance, when an element takes too long or its user is elsewhere, or when the
            load or a pipeline is spread unevenly. It also says what happens to copies when a site comes or
            goes. A policy advises you or acts by itself. Try it on the last day before you switch it on.
          </p>
        </div>
      )}
      {policies && policies.length > 0 && (
        <ul className="policies">
          {policies.map((policy) => (
            <Item key={policy.id} policy={policy} onEdit={() => setForm(policy)} onChange={reload} />
          ))}
        </ul>
      )}
      <Log />
      {form && (
        <PolicyForm
          policy={form === "new" ? null : form}
          onClose={() => setForm(null)}
          onSaved={() => {
            setForm(null);
            reload();
          }}
        />
      )}
    </Frame>
  );
}

function Item({ policy, onEdit, onChange }: { policy: Policy; onEdit: () => void; onChange: () => void }) {
  const locked = roleReason("operator");
  const said = notable(policy.standing);
  const word = !policy.enabled ? "Off" : policy.mode === "advice" ? "Advises" : "Acts by itself";
  const status = !policy.enabled ? "stopped" : "running";
  const enable = () =>
    patch(`/policies/${policy.id}`, { enabled: !policy.enabled })
      .then(onChange)
      .catch((error: unknown) => toastError(`${policy.name} was not changed`, error));
  const remove = async () => {
    const agreed = await confirm({
      title: `Delete ${policy.name}?`,
      text: "The policy no longer moves or advises anything. Moves that it has ordered continue, and its log entries stay.",
      action: `Delete ${policy.name}`,
      danger: true,
    });
    if (!agreed) return;
    try {
      await del(`/policies/${policy.id}`);
      toast({ tone: "done", title: `${policy.name} is deleted` });
      onChange();
    } catch (error) {
      toastError(`${policy.name} was not deleted`, error);
    }
  };
  const actions: [string, () => void][] = [
    [policy.enabled ? "Switch off" : "Switch on", () => void enable()],
    ["Change", onEdit],
    ["Delete", () => void remove()],
  ];
  return (
    <li className="card card__body stack stack--tight">
      <div className="row row--between row--wrap">
        <div className="row">
          <h2 className="section-title">{policy.name}</h2>
          <StatusMark status={status} word={word} />
        </div>
        <div className="row">
          {actions.map(([title, run]) => (
            <button
              key={title}
              className="button button--quiet button--small"
              disabled={!!locked}
              title={locked ?? undefined}
              aria-label={`${title}: ${policy.name}`}
              onClick={run}
            >
              {title}
            </button>
          ))}
        </div>
      </div>
      <p>{policySentence(policy)}</p>
      {said.length > 0 && (
        <ul className="policies__said">
          {said.map((each) => (
            <Said
              key={[each.node, each.site, each.pipeline, each.group].join(" ")}
              said={each}
              advises={policy.mode === "advice"}
            />
          ))}
        </ul>
      )}
      {policy.enabled && said.length === 0 && (
        <p className="muted small">
          {policy.rule.kind === "sites" ? sitesNow(policy.standing) : "No node needs it now."}
        </p>
      )}
    </li>
  );
}

function Said({ said, advises }: { said: Standing; advises: boolean }) {
  return (
    <li className="row row--between row--wrap">
      <span>
        {said.why} <span className="muted small">{codeWords(said.code)},</span>{" "}
        <span className="muted small">
          <Ago at={said.since} />
        </span>
      </span>
      {advises && <Advised {...adviceOf(said)} />}
    </li>
  );
}

/** Decisions with their reasons; only those that changed a verdict. */
function Log() {
  const { data, error, reload } = useLoaded(
    "policy log",
    (signal) => get<Decision[]>(`/policies/log?limit=${LOG_LINES}`, signal),
    5000,
  );
  return (
    <Section title="Decisions">
      {!data && (error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={4} />)}
      {data?.length === 0 && <p className="muted">No policy has decided anything yet.</p>}
      {data && data.length > 0 && (
        <div className="card table-wrap">
          <table className="table">
            <thead>
              <tr>
                <th>When</th>
                <th>Policy</th>
                <th>Node or site</th>
                <th>Element</th>
                <th>Decided</th>
                <th>Why</th>
              </tr>
            </thead>
            <tbody>
              {data.map((line) => (
                <Line key={line.id} line={line} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}

function Line({ line }: { line: Decision }) {
  const decided = doneWords(line);
  return (
    <tr>
      <td className="muted">
        <Ago at={line.at} />
      </td>
      <td>{line.policy}</td>
      <td>{line.node ? <a href={`/nodes/${encodeURIComponent(line.node)}`}>{line.node}</a> : line.site}</td>
      <td>
        {line.pipeline ? (
          <a href={livePage(line.pipeline, line.element)}>{line.title ?? line.pipeline}</a>
        ) : (
          <span className="muted">–</span>
        )}
      </td>
      <td>
        {line.handover ? <a href={`/handovers/${encodeURIComponent(line.handover)}`}>{decided}</a> : decided}
      </td>
      <td>{line.why}</td>
    </tr>
  );
}

mount(<PoliciesPage />);
