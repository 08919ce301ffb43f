import { useState } from "react";
import { Inbox } from "lucide-react";
import { get, problemText } from "../../shared/api";
import { useName } from "../../shared/live";
import { cellText, columnsOf, newestFirst, rowOf } from "../../shared/rows/cells";
import { RowTable } from "../../shared/rows/table";
import type { PeekRecord } from "../../shared/types";
import { Problem, Skeleton, useLoaded, Warning } from "../../shared/ui/parts";
import { tracing, useTrace } from "./trace";

export const streamPath = (pipeline: string, element: string, what: "peek" | "dead-letters", limit: number) =>
  `/pipelines/${encodeURIComponent(pipeline)}/streams/${encodeURIComponent(element)}/${what}?limit=${limit}`;

/** The records of a stream or of its dead letters. */
export interface Peeked {
  records: PeekRecord[];
}

function usePeek(
  pipeline: string,
  element: string,
  what: "peek" | "dead-letters",
  everyMs: number | undefined,
) {
  const { data, error, reload } = useLoaded(
    `${what} ${pipeline} ${element}`,
    (signal) => get<Peeked>(streamPath(pipeline, element, what, 50), signal),
    everyMs,
  );
  return { records: data?.records, error, reload };
}

/** The newest records of an element's output, newest first. */
export function Records({ pipeline, element }: { pipeline: string; element: string }) {
  const [held, setHeld] = useState(false);
  const name = useName(pipeline, element);
  const { records, error, reload } = usePeek(pipeline, element, "peek", held ? undefined : 2000);
  if (error && !records) return <Problem error={error} onRetry={reload} />;
  if (!records) return <Skeleton lines={6} />;
  return (
    <div className="stack stack--tight">
      <Stale error={error} />
      <div className="row row--between">
        <span className="muted small">
          Newest of <b>{name}</b>
        </span>
        <button
          type="button"
          className="button button--small"
          aria-pressed={held}
          onClick={() => setHeld(!held)}
        >
          {held ? "Follow again" : "Hold"}
        </button>
      </div>
      {records.length === 0 ? (
        <Nothing text="There are no records yet. They appear here as soon as the element writes one." />
      ) : (
        <RecordTable records={records} pipeline={pipeline} stream={element} />
      )}
    </div>
  );
}

interface RecordTableProps {
  records: PeekRecord[];
  columns?: string[] | undefined;
  /** whose rows they are */
  pipeline: string;
  stream: string;
}

/** Records, newest first. */
export function RecordTable({ records, columns: wanted, pipeline, stream }: RecordTableProps) {
  const { trace, dialog } = useTrace(pipeline);
  const columns = columnsOf(
    records,
    wanted?.map((name) => ({ name })),
  );
  const rows = newestFirst(records).map((record) => rowOf(record, columns));
  return (
    <>
      <RowTable label="Records" columns={columns} rows={rows} keyed onTrace={tracing(stream, trace)} />
      {dialog}
    </>
  );
}

interface Dead {
  reason?: string;
  raw?: unknown;
  input?: string;
}

export function DeadLetters({ pipeline, element }: { pipeline: string; element: string }) {
  const { records, error, reload } = usePeek(pipeline, element, "dead-letters", 3000);
  if (error && !records) return <Problem error={error} onRetry={reload} />;
  if (!records) return <Skeleton lines={4} />;
  if (records.length === 0)
    return (
      <Nothing text="There are none. A row that cannot be read or processed, or that arrives too late, is put here with the reason. It never stops the pipeline." />
    );
  const newest = [...records].reverse();
  return (
    <>
      <Stale error={error} />
      <ul className="dead">
        {newest.map((record) => {
          const dead = (record.value ?? {}) as Dead;
          return (
            <li key={`${record.partition}/${record.offset}`}>
              <div className="row row--between">
                <b>{dead.reason ?? "No reason given"}</b>
                <span className="muted small num">{cellText(record.at)}</span>
              </div>
              <code className="code">{cellText(dead.raw ?? record.value)}</code>
              {dead.input && <span className="muted small">from {dead.input}</span>}
            </li>
          );
        })}
      </ul>
    </>
  );
}

/** A note above records that were read before an error. */
export function Stale({ error }: { error: unknown }) {
  return error ? <Warning>These are old; reading again failed: {problemText(error)}</Warning> : null;
}

export function Nothing({ text }: { text: string }) {
  return (
    <div className="empty empty--small">
      <Inbox aria-hidden="true" />
      <p>{text}</p>
    </div>
  );
}
