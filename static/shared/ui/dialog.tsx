import type { ReactNode } from "react";
import * as RDialog from "@radix-ui/react-dialog";
import { X } from "lucide-react";

interface Props {
  open: boolean;
  onClose: () => void;
  title: string;
  description?: ReactNode;
  children?: ReactNode;
  footer?: ReactNode;
  size?: "s" | "m" | "l";
  /** true: it goes only by a choice, so there is nothing to close it with */
  mustChoose?: boolean;
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
  return (
    <RDialog.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <RDialog.Portal>
        <RDialog.Overlay className="dialog__scrim" />
        <RDialog.Content
          className={`dialog dialog--${size}`}
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
