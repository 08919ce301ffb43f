/** The form of a policy: what it means in words, and what it would have done in the last day. */
import { useState } from "react";
import { patch, post, problemText } from "../shared/api";
import { exact } from "../shared/format";
import { dryRunSentences, policyFaults, policySentence } from "../shared/policies";
import type { DryRun, Policy } from "../shared/types";
import { Dialog } from "../shared/ui/dialog";
import { Choice, Text } from "../shared/ui/field";

type Kind = Policy["kind"];
type Mode = Policy["mode"];

const USUAL: Record<Kind, { percent: string; for_s: string; moves: string }> = {
  cpu: { percent: "80", for_s: "60", moves: "6" },
  battery: { percent: "20", for_s: "0", moves: "60" },
};
const SHOWN_MOVES = 20;
const FIELD_MAX = 40;

/** An empty field is no number. */
const numberOf = (text: string): number => (text.trim() === "" ? NaN : Number(text));

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
  const [kind, setKind] = useState<Kind>(policy?.kind ?? "cpu");
  const [mode, setMode] = useState<Mode>(policy?.mode ?? "advice");
  const [typed, setTyped] = useState(
    policy
      ? {
          percent: String(Math.round(policy.threshold * 100)),
          for_s: String(policy.for_s),
          moves: String(policy.moves_per_hour),
        }
      : USUAL.cpu,
  );
  const [refused, setRefused] = useState("");
  const figures = {
    percent: numberOf(typed.percent),
    for_s: numberOf(typed.for_s),
    moves_per_hour: numberOf(typed.moves),
  };
  const faults = policyFaults(kind, figures);
  const right = Object.keys(faults).length === 0;
  const sent = {
    kind,
    threshold: figures.percent / 100,
    for_s: figures.for_s,
    moves_per_hour: figures.moves_per_hour,
  };
  const ready = right && name.trim() !== "";
  const save = () => {
    const saved = policy
      ? patch(`/policies/${policy.id}`, { ...sent, mode })
      : post("/policies", { ...sent, mode, name });
    saved.then(onSaved).catch((error: unknown) => setRefused(problemText(error)));
  };
  const set = (field: keyof typeof typed) => (text: string) => setTyped({ ...typed, [field]: text });
  const beyond = kind === "cpu" ? "CPU above, %" : "Battery below, %";
  return (
    <Dialog
      open
      onClose={onClose}
      size="m"
      title={policy ? `Change ${policy.name}` : "New policy"}
      description={right ? policySentence({ ...sent, mode }) : "Fill in the figures to see what it means."}
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
          options={[
            ["cpu", "a node's CPU is too busy"],
            ["battery", "a node's battery runs down"],
          ]}
          onChange={(next) => {
            setKind(next);
            setTyped(USUAL[next]);
          }}
        />
        <Text
          label={beyond}
          value={typed.percent}
          onChange={set("percent")}
          fault={faults.threshold}
          maxLength={FIELD_MAX}
          number
        />
        <Text
          label="For at least, s"
          value={typed.for_s}
          onChange={set("for_s")}
          fault={faults.for_s}
          maxLength={FIELD_MAX}
          number
        />
        <Choice
          label="What it does"
          value={mode}
          options={[
            ["advice", "advises: you move it with one click"],
            ["automatic", "moves by itself"],
          ]}
          onChange={setMode}
        />
        <Text
          label="Moves an hour, at most"
          value={typed.moves}
          onChange={set("moves")}
          fault={faults.moves_per_hour}
          maxLength={FIELD_MAX}
          number
        />
        {refused && (
          <p className="field__error" role="alert">
            {refused}
          </p>
        )}
        <TryOut key={JSON.stringify(sent)} figures={right ? sent : null} />
      </div>
    </Dialog>
  );
}

/** `figures` null: they are no policy yet. */
function TryOut({ figures }: { figures: object | null }) {
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
        <span className="muted small">Changes nothing.</span>
      </div>
      {state.error && (
        <p className="field__error" role="alert">
          {state.error}
        </p>
      )}
      <div role="status" className="stack stack--tight">
        {run && dryRunSentences(run).map((sentence) => <p key={sentence}>{sentence}</p>)}
        {run && run.moves.length > 0 && <Moves moves={run.moves} />}
      </div>
    </div>
  );
}

function Moves({ moves }: { moves: DryRun["moves"] }) {
  return (
    <ol className="policies__said">
      {moves.slice(0, SHOWN_MOVES).map((move) => (
        <li key={`${move.at} ${move.pipeline} ${move.element}`} title={move.why}>
          {exact(move.at)}: {move.title} from {move.origin} to {move.target}
        </li>
      ))}
      {moves.length > SHOWN_MOVES && <li className="muted">and {moves.length - SHOWN_MOVES} more</li>}
    </ol>
  );
}
