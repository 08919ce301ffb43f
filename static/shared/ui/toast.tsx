import { CircleAlert, CircleCheck, Info, X } from "lucide-react";
import { create } from "zustand";
import { codeOf, problemText } from "../api";
import { ErrorCode } from "./error-code";

interface Toast {
  id: number;
  tone: "info" | "done" | "error";
  title: string;
  text?: string;
  /** what it is an outcome of: a later outcome of the same takes its place */
  about?: string;
  /** of an error that has a page */
  code?: string;
  /** what can be done about it */
  actions?: { title: string; run: () => void }[];
}

export const useToasts = create<{ toasts: Toast[] }>(() => ({ toasts: [] }));
let next = 1;

function dismiss(id: number): void {
  useToasts.setState(({ toasts }) => ({ toasts: toasts.filter((toast) => toast.id !== id) }));
}

/** Takes away what was said about something that is being tried again. */
export function forget(about: string): void {
  useToasts.setState(({ toasts }) => ({ toasts: toasts.filter((toast) => toast.about !== about) }));
}

/**
 * Shows a message. Errors and messages with an action stay until they are closed; the others disappear
 * after a while.
 */
export function toast(message: Omit<Toast, "id">): void {
  const id = next++;
  if (message.about !== undefined) forget(message.about);
  useToasts.setState(({ toasts }) => ({ toasts: [...toasts.slice(-3), { ...message, id }] }));
  if (message.tone !== "error" && !message.actions?.length) window.setTimeout(() => dismiss(id), 5000);
}

export function toastError(title: string, error: unknown, about?: string): void {
  toast({
    tone: "error",
    title,
    text: problemText(error),
    code: codeOf(error),
    ...(about === undefined ? {} : { about }),
  });
}

const ICONS = { info: Info, done: CircleCheck, error: CircleAlert };

export function Toasts() {
  const { toasts } = useToasts();
  return (
    <div className="toasts" role="region" aria-label="Notifications" aria-live="polite">
      {toasts.map((each) => {
        const Icon = ICONS[each.tone];
        return (
          <div
            key={each.id}
            className={`toast toast--${each.tone}`}
            role={each.tone === "error" ? "alert" : "status"}
          >
            <Icon aria-hidden="true" />
            <div className="toast__text">
              <b>{each.title}</b>
              {each.text && <p>{each.text}</p>}
              <ErrorCode code={each.code} />
              {each.actions?.map(({ title, run }) => (
                <button
                  key={title}
                  className="button button--small"
                  onClick={() => {
                    dismiss(each.id);
                    run();
                  }}
                >
                  {title}
                </button>
              ))}
            </div>
            <button
              className="button button--quiet button--icon button--small"
              aria-label="Dismiss"
              onClick={() => dismiss(each.id)}
            >
              <X aria-hidden="true" />
            </button>
          </div>
        );
      })}
    </div>
  );
}
