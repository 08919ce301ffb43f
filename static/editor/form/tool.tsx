import type { ReactNode } from "react";

/** A small button that is only an icon. */
export function Tool({ label, icon, run }: { label: string; icon: ReactNode; run: () => void }) {
  return (
    <button
      type="button"
      className="button button--quiet button--icon button--small"
      aria-label={label}
      title={label}
      onClick={run}
    >
      {icon}
    </button>
  );
}
