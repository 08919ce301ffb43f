import { capitalised } from "../shared/format";
import type { Template } from "../shared/types";
import { Ago } from "../shared/ui/parts";

/** What a template shows, how long it runs, and on which data; of one that was saved here, by whom. */
export function Facts({ template }: { template: Template }) {
  const { shows, runs, data, made } = template;
  if (made)
    return (
      <p className="muted small">
        Saved here{made.by ? ` by ${made.by}` : ""}, <Ago at={made.at} />
      </p>
    );
  return (
    <dl className="facts">
      {Object.entries({ Shows: shows, Runs: runs, Data: data }).map(([name, words]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{capitalised(words)}</dd>
        </div>
      ))}
    </dl>
  );
}
