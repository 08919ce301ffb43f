import * as actions from "../../shared/actions";
import { elementPath, get } from "../../shared/api";
import { bytes, exact } from "../../shared/format";
import { useNode } from "../../shared/live";
import type { LiveElement } from "../../shared/types";
import { NodeAlerts } from "../../shared/ui/node-alerts";
import { Ago, Problem, Skeleton, Tip, useLoaded } from "../../shared/ui/parts";
import { Nothing } from "./records";

export interface CheckpointRow {
  seq: number;
  epoch: number | null;
  at: string | null;
  bytes: number | null;
  bytes_new: number | null;
  node: string | null;
  where: string[];
}

export const placesOf = (row: CheckpointRow): string => row.where.join(", ") || row.node || "–";

export interface CheckpointState {
  rows: CheckpointRow[];
  loading: boolean;
  error: unknown;
  reload: () => void;
}

/** The checkpoints that a restoration can start from, newest first. */
export function useCheckpoints(pipeline: string, element: string): CheckpointState {
  const { data, error, reload } = useLoaded(
    `checkpoints ${pipeline} ${element}`,
    (signal) =>
      get<{ checkpoints: CheckpointRow[] }>(`${elementPath(pipeline, element)}/checkpoints`, signal),
    5000,
  );
  return { rows: data?.checkpoints ?? [], loading: data === undefined && !error, error, reload };
}

interface Props {
  pipeline: string;
  element: LiveElement;
  onRestore: (seq: number) => void;
}

/** The list, below the alerts that stop new checkpoints from being taken or sent. */
export function Checkpoints(props: Props) {
  const node = useNode(props.element.node ?? "");
  return (
    <div className="stack">
      {node && <NodeAlerts node={node} />}
      <List {...props} />
    </div>
  );
}

function List({ pipeline, element, onRestore }: Props) {
  const { rows, loading, error, reload } = useCheckpoints(pipeline, element.id);
  const refused = actions.refusal(element.actions.restore);
  if (error && rows.length === 0) return <Problem error={error} onRetry={reload} />;
  if (loading) return <Skeleton lines={4} />;
  if (rows.length === 0)
    return (
      <Nothing text="There is no checkpoint yet. The first is taken a few seconds after the element starts." />
    );
  return (
    <div className="table-wrap">
      <table className="table table--tight">
        <thead>
          <tr>
            <th>Taken</th>
            <th className="num">Size</th>
            <th>Kept at</th>
            <th>
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.seq}>
              <td>
                <Ago at={row.at} />
              </td>
              <td
                className="num"
                title={
                  row.bytes_new === null
                    ? undefined
                    : `${bytes(row.bytes_new)} of it were new; taken after batch ${row.seq}`
                }
              >
                {bytes(row.bytes)}
              </td>
              <td className="muted">{placesOf(row)}</td>
              <td>
                <Tip text={refused ?? `Restore from the checkpoint of ${exact(row.at)}`}>
                  <button
                    type="button"
                    className="button button--quiet button--small"
                    aria-disabled={!!refused}
                    onClick={() => !refused && onRestore(row.seq)}
                  >
                    Restore
                  </button>
                </Tip>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
