import { useEffect, useState } from "react";
import { create } from "zustand";
import { Dialog } from "../shared/ui/dialog";
import { Text } from "../shared/ui/field";

interface Question {
  title: string;
  action: string;
  value: string;
  /** what is wrong with a name; null when nothing is */
  fault: (name: string) => string | null;
  label?: string;
  description?: string;
}

const usePending = create<{ question: Question | null; answer: (name: string | null) => void }>(() => ({
  question: null,
  answer: () => undefined,
}));

/** Asks for a name; resolves to null if the user cancels. */
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
  const [text, setText] = useState("");
  useEffect(() => setText(question?.value ?? ""), [question]);
  const wrong = text ? (question?.fault(text) ?? null) : null;
  const submit = () => text && !wrong && answer(text.trim());
  return (
    <Dialog
      open={question !== null}
      onClose={() => answer(null)}
      title={question?.title ?? ""}
      description={question?.description}
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
      <Text
        label={question?.label ?? "Name"}
        value={text}
        fault={wrong}
        autoFocus
        onChange={setText}
        onEnter={submit}
      />
    </Dialog>
  );
}
