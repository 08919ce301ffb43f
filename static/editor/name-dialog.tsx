import { useEffect, useId, useState } from "react";
import { create } from "zustand";
import { nameFault } from "../shared/names";
import { Dialog } from "../shared/ui/dialog";

interface Question {
  title: string;
  action: string;
  value: string;
}

const usePending = create<{ question: Question | null; answer: (name: string | null) => void }>(() => ({
  question: null,
  answer: () => undefined,
}));

/** Asks for a name; null: there shall be none. */
export function askName(question: Question): Promise<string | null> {
  return new Promise((resolve) => {
    usePending.setState({
      question,
      answer: (name) => {
        usePending.setState({ question: null });
        resolve(name);
      },
    });
  });
}

export function NameDialog() {
  const { question, answer } = usePending();
  const id = useId();
  const [text, setText] = useState("");
  useEffect(() => setText(question?.value ?? ""), [question]);
  const wrong = text ? nameFault(text) : null;
  const submit = () => text && !wrong && answer(text);
  return (
    <Dialog
      open={question !== null}
      onClose={() => answer(null)}
      title={question?.title ?? ""}
      footer={
        <>
          <button className="button" onClick={() => answer(null)}>
            Cancel
          </button>
          <button className="button button--primary" disabled={!text || !!wrong} onClick={submit}>
            {question?.action}
          </button>
        </>
      }
    >
      <div className="field">
        <label className="field__label" htmlFor={id}>
          Name
        </label>
        <input
          className="input"
          id={id}
          autoFocus
          value={text}
          spellCheck={false}
          aria-invalid={!!wrong}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && submit()}
        />
        {wrong && <p className="field__error">{wrong}</p>}
      </div>
    </Dialog>
  );
}
