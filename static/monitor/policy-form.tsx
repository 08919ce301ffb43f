/** The form of a policy: what it means in words, and what it would have done in the last day. */
import { useState } from "react";
import { patch, post, problemText } from "../shared/api";
import { exact } from "../shared/format";
import { typedNumber } from "../shared/numbers";
import { dryActWords, dryRunSentences, policySentence } from "../shared/policies";
import { KINDS, numberFault, ruleOf, typedOf, usual, type Kind, type Typed } from "../shared/policy-rules";
import type { DryRun, Policy } from "../shared/types";
import { Dialog } from "../shared/ui/dialog";
import { Choice, Text } from "../shared/ui/field";
import { PolicyFields } from "./policy-fields";

type Mode = Policy["mode"];

const SHOWN_ACTS = 20;
const FIELD_MAX = 40;

const MOVES = { least: 1, most: 100, unit: "" };

export function PolicyForm({
  policy,
  onClose,
  onSaved,
}: {
  policy: Policy | null;
  onClose: () => void;
  onSaved: () => void;
}) {
  const [name, setName] = useState(policy?.name ?? "");
  const [kind, setKind] = useState<Kind>(policy?.rule.kind ?? "cpu");
  const [mode, setMode] = useState<Mode>(policy?.mode ?? "advice");
  const [typed, setTyped] = useState<Typed>(policy ? typedOf(policy.rule) : usual("cpu"));
  const [moves, setMoves] = useState(policy ? String(policy.moves_per_hour) : KINDS.cpu.moves);
  const [refused, setRefused] = useState("");
  const { rule, faults } = ruleOf(kind, typed);
  const movesFault = numberFault(moves, MOVES);
  const sent = rule && !movesFault ? { rule, moves_per_hour: typedNumber(moves) } : null;
  const ready = sent && name.trim() !== "";
  const save = () => {
    const saved = policy
      ? patch(`/policies/${policy.id}`, { ...sent, mode })
      : post("/policies", { ...sent, mode, name });
    saved.then(onSaved).catch((error: unknown) => setRefused(problemText(error)));
  };
  return (
    <Dialog
      open
      onClose={onClose}
      size="m"
      title={policy ? `Change ${policy.name}` : "New policy"}
      description={
        sent ? policySentence({ ...sent, mode }) : "Fill in the figures to see what the policy does."
      }
      footer={
        <>
          <button className="button" onClick={onClose}>
            Cancel
          </button>
          <button className="button button--primary" disabled={!ready} onClick={save}>
            {policy ? "Save policy" : "Create policy"}
          </button>
        </>
      }
    >
      <div className="stack">
        {!policy && (
          <Text
            label="Name"
            value={name}
            onChange={setName}
            placeholder="busy edge"
            maxLength={FIELD_MAX}
            autoFocus
          />
        )}
        <Choice
          label="When"
          value={kind}
          options={Object.entries(KINDS).map(([key, { when }]) => [key as Kind, when])}
          onChange={(next) => {
            setKind(next);
            setTyped(usual(next));
            setMoves(KINDS[next].moves);
          }}
        />
        <PolicyFields kind={kind} typed={typed} faults={faults} onChange={setTyped} />
        <Choice
          label="What it does"
          value={mode}
          options={[
            ["advice", "advises you: you act with one click"],
            ["automatic", "acts by itself"],
          ]}
          onChange={setMode}
        />
        <Text
          label={kind === "sites" ? "Upgrades and restorations per hour, at most" : "Moves per hour, at most"}
          value={moves}
          onChange={setMoves}
          fault={movesFault}
          maxLength={FIELD_MAX}
          number
        />
        {refused && (
          <p className="field__error" role="alert">
            {refused}
          </p>
        )}
        <TryOut key={JSON.stringify(sent)} figures={sent} note={KINDS[kind].tried ?? ""} />
      </div>
    </Dialog>
  );
}

/** `figures` is null while they do not make a policy yet. */
function TryOut({ figures, note }: { figures: object | null; note: string }) {
  const [run, setRun] = useState<DryRun | null>(null);
  const [state, setState] = useState<{ busy: boolean; error: string }>({ busy: false, error: "" });
  const start = () => {
    setState({ busy: true, error: "" });
    post<DryRun>("/policies/dry-run", figures)
      .then((found) => {
        setRun(found);
        setState({ busy: false, error: "" });
      })
      .catch((error: unknown) => setState({ busy: false, error: problemText(error) }));
  };
  return (
    <div className="stack stack--tight">
      <div className="row row--wrap">
        <button className="button button--small" disabled={!figures || state.busy} onClick={start}>
          {state.busy ? "Trying…" : "Try it on the last day"}
        </button>
        <span className="muted small">This changes nothing. {note}</span>
      </div>
      {state.error && (
        <p className="field__error" role="alert">
          {state.error}
        </p>
      )}
      <div role="status" className="stack stack--tight">
        {run && dryRunSentences(run).map((sentence) => <p key={sentence}>{sentence}</p>)}
        {run && run.acts.length > 0 && <Acts acts={run.acts} />}
      </div>
    </div>
  );
}

function Acts({ acts }: { acts: DryRun["acts"] }) {
  return (
    <ol className="policies__said">
      {acts.slice(0, SHOWN_ACTS).map((act, index) => (
        <li key={index} title={act.why}>
          {exact(act.at)}: {dryActWords(act)}
        </li>
      ))}
      {acts.length > SHOWN_ACTS && <li className="muted">and {acts.length - SHOWN_ACTS} more</li>}
    </ol>
  );
}
