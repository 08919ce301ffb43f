import type { ReactNode } from "react";

interface Actions {
  name: string;
  /** why the actions are disabled */
  locked: string | null;
  actions: readonly (readonly [string, () => void])[];
}

/** The head of a rule, a route or a channel: its name, its state, and what may be done with it. */
export function ItemHead({ name, mark, locked, actions }: Actions & { mark: ReactNode }) {
  return (
    <div className="row row--between row--wrap">
      <div className="row">
        <h3 className="section-title">{name}</h3>
        {mark}
      </div>
      <ItemActions name={name} locked={locked} actions={actions} />
    </div>
  );
}

/** What may be done with it, as buttons. */
export function ItemActions({ name, locked, actions }: Actions) {
  return (
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
  );
}
