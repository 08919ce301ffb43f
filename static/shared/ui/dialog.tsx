import { useId, useState, type ReactNode } from "react";
import * as RDialog from "@radix-ui/react-dialog";
import { X } from "lucide-react";

interface Props {
  open: boolean;
  onClose: () => void;
  title: string;
  description?: ReactNode;
  children?: ReactNode;
  footer?: ReactNode;
  size?: "s" | "m" | "l" | "xl";
  /** true when only a choice closes it, so it has no close button */
  mustChoose?: boolean;
}

/** The focused element; for a menu item, which disappears with its menu, the button that opened it. */
function focused(): HTMLElement | null {
  const { activeElement } = document;
  const menu = activeElement?.closest("[role=menu]");
  const found = menu ? document.getElementById(menu.getAttribute("aria-labelledby") ?? "") : activeElement;
  return found instanceof HTMLElement ? found : null;
}

export function Dialog({
  open,
  onClose,
  title,
  description,
  children,
  footer,
  size = "s",
  mustChoose,
}: Props) {
  const [before, setBefore] = useState<HTMLElement | null>(null);
  const [wasOpen, setWasOpen] = useState(false);
  if (open !== wasOpen) {
    setWasOpen(open);
    if (open) setBefore(focused());
  }
  return (
    <RDialog.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <RDialog.Portal>
        <RDialog.Overlay className="dialog__scrim" />
        <RDialog.Content
          className={`dialog dialog--${size}`}
          onCloseAutoFocus={(event) => {
            // Radix looks for a trigger of its own, which these dialogs do not have
            event.preventDefault();
            before?.focus();
          }}
          {...(description ? {} : { "aria-describedby": undefined })}
        >
          <div className="dialog__head">
            <RDialog.Title className="dialog__title">{title}</RDialog.Title>
            {!mustChoose && (
              <RDialog.Close className="button button--quiet button--icon button--small" aria-label="Close">
                <X aria-hidden="true" />
              </RDialog.Close>
            )}
          </div>
          {description && (
            <RDialog.Description asChild>
              <div className="dialog__text">{description}</div>
            </RDialog.Description>
          )}
          {children && <div className="dialog__body">{children}</div>}
          {footer && <div className="dialog__foot">{footer}</div>}
        </RDialog.Content>
      </RDialog.Portal>
    </RDialog.Root>
  );
}

/** The button that does it; above it, why it cannot be done. */
export function DialogAction({
  title,
  danger,
  refused,
  busy,
  run,
}: {
  title: string;
  danger?: boolean;
  refused?: string | null;
  busy?: boolean;
  run: () => void;
}) {
  const why = useId();
  const off = busy || !!refused;
  return (
    <>
      {refused && (
        <p id={why} className="dialog__why">
          {refused}
        </p>
      )}
      <button
        type="button"
        className={`button button--primary${danger ? " button--danger" : ""}`}
        aria-disabled={off}
        aria-describedby={refused ? why : undefined}
        onClick={() => !off && run()}
      >
        {title}
      </button>
    </>
  );
}
