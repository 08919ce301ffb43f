import { livePage } from "../shared/address";
import { get } from "../shared/api";
import { afterTime, afterWords, failureWords } from "../shared/if-it-fails";
import type { ClusterNode, NodeFailure } from "../shared/types";
import { Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { Section } from "./frame";

/** What would come of its elements if it died now. Asked for when what runs there has changed. */
export function IfItFails({ node }: { node: ClusterNode }) {
  const path = `/nodes/${encodeURIComponent(node.name)}/failure`;
  const owned = node.elements.filter(({ role }) => role === "owner");
  const runs = owned.map(({ pipeline, element }) => `${pipeline}/${element}`).join(" ");
  const { data, error, reload } = useLoaded(`${path} ${runs}`, (signal) => get<NodeFailure>(path, signal));
  if (!node.up || owned.length === 0) return null;
  if (!data) {
    return (
      <Section title="If it fails">
        {error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={2} height={40} />}
      </Section>
    );
  }
  if (data.groups.length === 0) return null;
  return (
    <Section
      title="If it fails"
      aside={
        <button className="button button--quiet" onClick={reload}>
          Look again
        </button>
      }
    >
      <p>{failureWords(node.name, data)}</p>
      <div className="card table-wrap">
        <table className="table table--rows">
          <thead>
            <tr>
              <th>Element</th>
              <th>Goes on at</th>
              <th>How</th>
              <th>Runs again after</th>
            </tr>
          </thead>
          <tbody>
            {data.groups.map((group) => {
              const time = afterTime(group, data.silence_s);
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
      {data.backups.length > 0 && (
        <p className="muted small">
          A copy of the checkpoints of {data.backups.join(", ")} lies here: another node would get one.
        </p>
      )}
    </Section>
  );
}
