import { useState, type ReactNode } from "react";
import { Dialog, DialogAction } from "./dialog";
import { Problem } from "./parts";

/** A dialog that orders something: it stays, with the reason, when the server refuses. */
export function OrderDialog({
  title,
  text,
  action,
  danger,
  refused,
  size,
  run,
  onClose,
  children,
}: {
  title: string;
  text?: ReactNode;
  /** the verb on the button: "Migrate to edge-b" */
  action: string;
  danger?: boolean;
  /** why it cannot be ordered as it is chosen now */
  refused?: string | null;
  size?: "s" | "m" | "l";
  run: () => Promise<void>;
  onClose: () => void;
  children?: ReactNode;
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const order = async () => {
    setBusy(true);
    setError(null);
    try {
      await run();
      onClose();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      description={text}
      size={size ?? "m"}
      footer={
        <>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <DialogAction
            title={action}
            danger={danger}
            refused={refused}
            busy={busy}
            run={() => void order()}
          />
        </>
      }
    >
      <div className="stack">
        {children}
        {error ? <Problem error={error} /> : null}
      </div>
    </Dialog>
  );
}
