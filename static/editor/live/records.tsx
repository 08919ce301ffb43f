import { useState } from "react";
import { Inbox } from "lucide-react";
import { get, problemText } from "../../shared/api";
import { useName } from "../../shared/live";
import { columnsOf, newestFirst, rowOf } from "../../shared/rows/cells";
import { RowTable } from "../../shared/rows/table";
import type { PeekRecord } from "../../shared/types";
import { HoldButton } from "../../shared/ui/hold";
import { Problem, Skeleton, useLoaded, Warning } from "../../shared/ui/parts";
import { tracing, useTrace } from "../../shared/rows/trace";

export const peekPath = (pipeline: string, element: string, limit: number) =>
  `/pipelines/${encodeURIComponent(pipeline)}/streams/${encodeURIComponent(element)}/peek?limit=${limit}`;

/** The records of a stream. */
export interface Peeked {
  records: PeekRecord[];
}

function usePeek(pipeline: string, element: string, everyMs: number | undefined) {
  const { data, error, reload } = useLoaded(
    `peek ${pipeline} ${element}`,
    (signal) => get<Peeked>(peekPath(pipeline, element, 50), signal),
    everyMs,
  );
  return { records: data?.records, error, reload };
}

/** The newest records of an element's output, newest first. */
export function Records({ pipeline, element }: { pipeline: string; element: string }) {
  const [held, setHeld] = useState(false);
  const name = useName(pipeline, element);
  const { records, error, reload } = usePeek(pipeline, element, held ? undefined : 2000);
  if (error && !records) return <Problem error={error} onRetry={reload} />;
  if (!records) return <Skeleton lines={6} />;
  return (
    <div className="stack stack--tight">
      <Stale error={error} />
      <div className="row row--between">
        <span className="muted small">
          Newest of <b>{name}</b>
        </span>
        <HoldButton held={held} onHold={setHeld} />
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
