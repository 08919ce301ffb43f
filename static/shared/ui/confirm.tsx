import { create } from "zustand";
import type { ReactNode } from "react";
import { Dialog } from "./dialog";

interface Question {
  title: string;
  /** What will happen, and whether it can be undone. */
  text: ReactNode;
  /** The verb on the button: "Migrate to edge-b". */
  action: string;
  danger?: boolean;
}

const usePending = create<{ question: Question | null; answer: (yes: boolean) => void }>(() => ({
  question: null,
  answer: () => undefined,
}));

/** Ask; resolves to whether the user agreed. */
export function confirm(question: Question): Promise<boolean> {
  return new Promise((resolve) => {
    usePending.setState({
      question,
      answer: (yes) => {
        usePending.setState({ question: null });
        resolve(yes);
      },
    });
  });
}

export function ConfirmHost() {
  const { question, answer } = usePending();
  return (
    <Dialog
      open={question !== null}
      onClose={() => answer(false)}
      title={question?.title ?? ""}
      description={question?.text}
      footer={
        <>
          <button className="button" onClick={() => answer(false)}>
            Cancel
          </button>
          <button
            className={`button button--primary${question?.danger ? " button--danger" : ""}`}
            onClick={() => answer(true)}
            autoFocus
          >
            {question?.action}
          </button>
        </>
      }
    />
  );
}
