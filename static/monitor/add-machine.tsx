import { useId, useRef, useState } from "react";
import { Check, Copy, Plus } from "lucide-react";
import { post, problemText } from "../shared/api";
import { exact } from "../shared/format";
import { useLive } from "../shared/live";
import { roleReason } from "../shared/page";
import { Dialog } from "../shared/ui/dialog";
import { StatusMark, Warning } from "../shared/ui/parts";

interface Enrolment {
  name?: string;
  token?: string;
  command: string;
  expires_at?: string | null;
  version?: string;
  /** what another machine could not reach */
  warnings?: string[];
}

/** `asked`: the dialog is open at first. */
export function AddMachine({ asked = false }: { asked?: boolean }) {
  const locked = roleReason("admin");
  const [open, setOpen] = useState(asked && !locked);
  return (
    <>
      <button
        className="button button--primary"
        disabled={!!locked}
        title={locked ?? undefined}
        onClick={() => setOpen(true)}
      >
        <Plus aria-hidden="true" />
        Add a machine
      </button>
      {open && <Form onClose={() => setOpen(false)} />}
    </>
  );
}

const NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

function Form({ onClose }: { onClose: () => void }) {
  const id = useId();
  const [name, setName] = useState("");
  const [error, setError] = useState("");
  const [enrolment, setEnrolment] = useState<Enrolment | null>(null);
  // a node that is down may have been installed again, and is then invited again
  const taken = useLive((state) => state.nodes.some((node) => node.name === name && node.up));
  const wrong =
    name && !NAME.test(name)
      ? "Use lower-case letters, digits and hyphens."
      : !enrolment && taken
        ? "A node with that name is running."
        : "";
  const create = async () => {
    setError("");
    try {
      setEnrolment(await post<Enrolment>("/nodes", { name }));
    } catch (problem) {
      setError(problemText(problem));
    }
  };
  if (enrolment) return <Command name={name} enrolment={enrolment} onClose={onClose} />;
  return (
    <Dialog
      open
      onClose={onClose}
      title="Add a machine"
      description="The machine needs Python 3.11 or newer, Java 17, and a connection to this address and to Kafka. You get one command to run on it."
      footer={
        <>
          <button className="button" onClick={onClose}>
            Cancel
          </button>
          <button
            className="button button--primary"
            disabled={!name || wrong !== ""}
            onClick={() => void create()}
          >
            Make the command
          </button>
        </>
      }
    >
      <div className="field">
        <label className="field__label" htmlFor={id}>
          Name of the node
        </label>
        <input
          className="input"
          id={id}
          autoFocus
          placeholder="edge-c"
          value={name}
          spellCheck={false}
          aria-invalid={wrong !== "" || error !== ""}
          onChange={(event) => setName(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && name && !wrong && void create()}
        />
        {(wrong || error) && (
          <p className="field__error" role="alert">
            {wrong || error}
          </p>
        )}
      </div>
    </Dialog>
  );
}

function Command({ name, enrolment, onClose }: { name: string; enrolment: Enrolment; onClose: () => void }) {
  const [said, say] = useState("Copy");
  const node = useLive((state) => state.nodes.find((each) => each.name === name));
  const text = useRef<HTMLPreElement>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(enrolment.command);
    } catch {
      // browsers have no clipboard without HTTPS: then it is selected, to be copied by hand
      if (text.current) window.getSelection()?.selectAllChildren(text.current);
      say("Press Ctrl C");
      return;
    }
    say("Copied");
    window.setTimeout(() => say("Copy"), 2500);
  };
  return (
    <Dialog
      open
      onClose={onClose}
      size="m"
      title={`Run this on ${name}`}
      description={`Its token works once${enrolment.expires_at ? `, until ${exact(enrolment.expires_at)}` : ""}. It is shown only now.`}
      footer={
        <button className="button button--primary" onClick={onClose}>
          Done
        </button>
      }
    >
      <div className="stack">
        {enrolment.warnings?.map((warning) => (
          <Warning key={warning}>{warning}</Warning>
        ))}
        <div className="command">
          <pre className="code" tabIndex={0} ref={text}>
            {enrolment.command}
          </pre>
          <button className="button button--small" onClick={() => void copy()}>
            {said === "Copied" ? <Check aria-hidden="true" /> : <Copy aria-hidden="true" />}
            {said}
          </button>
        </div>
        <div role="status">
          {node?.up ? (
            <StatusMark status="up" word={`${name} is here`} />
          ) : (
            <StatusMark status="starting up" word={`Waiting for ${name}`} />
          )}
        </div>
      </div>
    </Dialog>
  );
}
