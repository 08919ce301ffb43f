import type { ReactNode } from "react";
import { Tip } from "../../shared/ui/parts";

/** A button that can be reached and says why when it cannot be used. */
export function ActionButton({
  title,
  icon,
  disabled,
  run,
}: {
  title: string;
  icon: ReactNode;
  disabled: string | null;
  run: () => void;
}) {
  return (
    <Tip text={disabled}>
      <button
        type="button"
        className="button button--small"
        aria-disabled={!!disabled}
        onClick={() => !disabled && run()}
      >
        {icon}
        {title}
      </button>
    </Tip>
  );
}
