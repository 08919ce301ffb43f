import * as actions from "../../shared/actions";
import { elementPath, get, listOf } from "../../shared/api";
import { bytes, millis } from "../../shared/format";
import { useLive } from "../../shared/live";
import type { LiveElement } from "../../shared/types";
import { kindWords } from "../../shared/ui/handover";
import { Ago, Problem, Skeleton, StatusMark, useLoaded } from "../../shared/ui/parts";
import { useShallow } from "zustand/react/shallow";
import { Nothing } from "./records";

interface CheckpointRow {
  seq: number;
  epoch?: number;
  at?: string | number | null;
  created_at?: string | number | null;
  created_at_ms?: number | null;
  bytes?: number | null;
  bytes_total?: number | null;
  bytes_new?: number | null;
  where?: string[] | string | null;
  node?: string | null;
}

const places = (where: CheckpointRow["where"]): string =>
  Array.isArray(where) ? where.join(", ") : (where ?? "–");

export function Checkpoints({ pipeline, element }: { pipeline: string; element: LiveElement }) {
  const { data, error, reload } = useLoaded(
    `checkpoints ${pipeline} ${element.id}`,
    (signal) => get<unknown>(`${elementPath(pipeline, element.id)}/checkpoints`, signal),
    5000,
  );
  const refused = actions.refusal(element.actions?.restore);
  if (error && data === undefined) return <Problem error={error} onRetry={reload} />;
  if (data === undefined) return <Skeleton lines={4} />;
  const rows = listOf<CheckpointRow>(data);
  if (rows.length === 0)
    return <Nothing text="No checkpoint yet. The first is taken a few seconds after the element starts." />;
  return (
    <div className="table-wrap">
      <table className="table table--tight">
        <thead>
          <tr>
            <th className="num">Seq</th>
            <th>Taken</th>
            <th className="num">Size</th>
            <th>Kept at</th>
            <th />
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.seq}>
              <td className="num">{row.seq}</td>
              <td>
                <Ago at={row.at ?? row.created_at ?? row.created_at_ms} />
              </td>
              <td
                className="num"
                title={row.bytes_new != null ? `${bytes(row.bytes_new)} of it were new` : undefined}
              >
                {bytes(row.bytes ?? row.bytes_total)}
              </td>
              <td className="muted">{places(row.where ?? row.node)}</td>
              <td>
                <button
                  type="button"
                  className="button button--quiet button--small"
                  disabled={!!refused}
                  title={refused ?? `Restore from the checkpoint at ${row.seq}`}
                  onClick={() => void actions.restore(pipeline, element, element.node, row.seq)}
                >
                  Restore
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Copies({ element }: { element: LiveElement }) {
  if (!element.replicas || element.replicas.length === 0)
    return <Nothing text="No node has reported a copy yet." />;
  return (
    <div className="table-wrap">
      <table className="table table--tight">
        <thead>
          <tr>
            <th>Node</th>
            <th>Role</th>
            <th>Phase</th>
            <th className="num">Epoch</th>
            <th className="num">Seq</th>
          </tr>
        </thead>
        <tbody>
          {element.replicas.map((replica) => (
            <tr key={replica.node}>
              <td>{replica.node}</td>
              <td>
                <StatusMark status={replica.role} />
              </td>
              <td className="muted">{replica.phase}</td>
              <td className="num">{replica.epoch}</td>
              <td className="num">{replica.seq}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function PastHandovers({ pipeline, element }: { pipeline: string; element: LiveElement }) {
  const group = element.group ?? element.id;
  const handovers = useLive(
    useShallow((state) =>
      state.handovers.filter(
        (handover) =>
          handover.pipeline === pipeline && (handover.group === group || handover.element === element.id),
      ),
    ),
  );
  if (handovers.length === 0) return null;
  return (
    <section className="stack stack--tight drawer__section">
      <h3 className="section-title">Handovers</h3>
      <table className="table table--tight">
        <tbody>
          {handovers.map((handover) => (
            <tr key={handover.id}>
              <td>
                <a href={`/handovers/${encodeURIComponent(handover.id)}`}>{kindWords(handover)}</a>
              </td>
              <td className="muted">
                {handover.origin ?? "–"} → {handover.target}
              </td>
              <td>
                <StatusMark
                  status={handover.outcome ?? "moving"}
                  word={handover.outcome ?? handover.phase.toLowerCase()}
                />
              </td>
              <td className="num">{handover.gap_ms == null ? "" : `gap ${millis(handover.gap_ms)}`}</td>
              <td className="muted">
                <Ago at={handover.created_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
