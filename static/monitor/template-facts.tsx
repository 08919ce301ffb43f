import { capitalised } from "../shared/format";
import type { Template } from "../shared/types";

/** What a template shows, how long it runs, and on which data. */
export function Facts({ template }: { template: Template }) {
  const { shows, runs, data } = template;
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
