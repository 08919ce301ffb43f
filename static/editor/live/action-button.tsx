import type { ReactNode } from "react";
import { Tip } from "../../shared/ui/parts";

/** A button that can be reached and says why when it cannot be used. */
export function ActionButton({
  title,
  icon,
  disabled,
  why,
  run,
}: {
  title: string;
  icon: ReactNode;
  disabled: string | null;
  /** the id of the text that says why, where it stands on the page; else a tip says it */
  why?: string | undefined;
  run: () => void;
}) {
  return (
    <Tip text={why ? null : disabled}>
      <button
        type="button"
        className="button button--small"
        aria-disabled={!!disabled}
        aria-describedby={why}
        onClick={() => !disabled && run()}
      >
        {icon}
        {title}
      </button>
    </Tip>
  );
}
