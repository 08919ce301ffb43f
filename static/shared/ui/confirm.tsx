import { create } from "zustand";
import type { ReactNode } from "react";
import { Dialog } from "./dialog";

interface Question {
  title: string;
  /** What will happen, and whether it can be undone. */
  text: ReactNode;
  /** The verb on the button: "Migrate to edge-b"; null while there is nothing to agree to yet. */
  action: string | null;
  danger?: boolean;
}

export const usePending = create<{ question: Question | null; answer: (yes: boolean) => void }>(() => ({
  question: null,
  answer: () => undefined,
}));

/** Ask; resolves to whether the user agreed. */
export function confirm(question: Question & { action: string }): Promise<boolean> {
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

/**
 * Says what is found out before a question can be put. Resolves to what `work` found, or to null if the user
 * gave up, which aborts the signal. A question that is put next takes the place of this dialog.
 */
export async function meanwhile<T>(
  title: string,
  text: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const gaveUp = new AbortController();
  const close = () => usePending.setState({ question: null });
  usePending.setState({
    question: { title, text: <span role="status">{text}</span>, action: null },
    answer: () => {
      gaveUp.abort();
      close();
    },
  });
  try {
    const found = await work(gaveUp.signal);
    return gaveUp.signal.aborted ? null : found;
  } catch (error) {
    if (gaveUp.signal.aborted) return null;
    throw error;
  } finally {
    if (!gaveUp.signal.aborted) close();
  }
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
          {question?.action && (
            <button
              className={`button button--primary${question.danger ? " button--danger" : ""}`}
              onClick={() => answer(true)}
              autoFocus
            >
              {question.action}
            </button>
          )}
        </>
      }
    />
  );
}
