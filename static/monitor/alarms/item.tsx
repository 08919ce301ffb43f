import type { ReactNode } from "react";

/** The head of a rule, a route or a channel: its name, its state, and what may be done with it. */
export function ItemHead({
  name,
  mark,
  locked,
  actions,
}: {
  name: string;
  mark: ReactNode;
  /** why the actions are disabled */
  locked: string | null;
  actions: readonly (readonly [string, () => void])[];
}) {
  return (
    <div className="row row--between row--wrap">
      <div className="row">
        <h3 className="section-title">{name}</h3>
        {mark}
      </div>
      <div className="row row--wrap">
        {actions.map(([title, run]) => (
          <button
            key={title}
            type="button"
            className="button button--quiet button--small"
            disabled={!!locked}
            title={locked ?? undefined}
            aria-label={`${title}: ${name}`}
            onClick={run}
          >
            {title}
          </button>
        ))}
      </div>
    </div>
  );
}
