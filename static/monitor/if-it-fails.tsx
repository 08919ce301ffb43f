import { livePage } from "../shared/address";
import { get } from "../shared/api";
import { afterTime, afterWords, failureWords } from "../shared/if-it-fails";
import type { ClusterNode, NodeFailure } from "../shared/types";
import { Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { Section } from "../shared/ui/frame";

/**
 * What would happen to a node's elements if the node failed now. It is not loaded if the node runs
 * nothing.
 */
export function IfItFails({ node }: { node: ClusterNode }) {
  const owned = node.elements.filter(({ role }) => role === "owner");
  if (!node.up || owned.length === 0) return null;
  return (
    <Foretold name={node.name} runs={owned.map((each) => `${each.pipeline}/${each.element}`).join(" ")} />
  );
}

/** `runs`: the elements on the node; when they change, the answer is loaded again. */
function Foretold({ name, runs }: { name: string; runs: string }) {
  const path = `/nodes/${encodeURIComponent(name)}/failure`;
  const { data, error, reload } = useLoaded(`${path} ${runs}`, (signal) => get<NodeFailure>(path, signal));
  if (data?.groups.length === 0) return null;
  const again = (
    <button className="button button--quiet" onClick={reload}>
      Look again
    </button>
  );
  return (
    <Section title="If it fails" aside={data && again}>
      {data && <Outcomes name={name} failure={data} />}
      {!data && (error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={2} height={40} />)}
    </Section>
  );
}

function Outcomes({ name, failure }: { name: string; failure: NodeFailure }) {
  return (
    <>
      <p>{failureWords(name, failure)}</p>
      <div className="card table-wrap">
        <table className="table table--rows">
          <thead>
            <tr>
              <th>Element</th>
              <th>Continues on</th>
              <th>How</th>
              <th>Runs again after</th>
            </tr>
          </thead>
          <tbody>
            {failure.groups.map((group) => {
              const time = afterTime(group, failure.silence_s);
              return (
                <tr key={`${group.pipeline}/${group.element}`}>
                  <td>
                    <a className="tile__name" href={livePage(group.pipeline, group.element)}>
                      {group.titles.join(", ")}
                    </a>
                  </td>
                  <td>{group.target ?? "–"}</td>
                  <td className="muted">{afterWords(group)}</td>
                  <td title={time?.note}>{time?.value ?? "–"}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {failure.backups.length > 0 && (
        <p className="muted small">
          A copy of the checkpoints of {failure.backups.join(", ")} is stored here; another node would get
          one.
        </p>
      )}
    </>
  );
}
