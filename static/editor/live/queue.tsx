/** A stream between two elements: what its reader has read last, what waits, and any row of it. */
import { useState } from "react";
import { ArrowRight, CornerUpLeft } from "lucide-react";
import { get } from "../../shared/api";
import { bytes, millis, plural, rate } from "../../shared/format";
import { useElement, useName } from "../../shared/live";
import { columnsOf, rowOf, type RowColumn, type ShownRow } from "../../shared/rows/cells";
import { RowTable } from "../../shared/rows/table";
import { WholeRow } from "../../shared/rows/whole";
import { useSettled } from "../../shared/settled";
import type { Queue } from "../../shared/types";
import { Details } from "../../shared/ui/details";
import { HoldButton } from "../../shared/ui/hold";
import { Figure, Problem, Skeleton, useLoaded, WaitingFigure } from "../../shared/ui/parts";
import type { StreamEdge } from "../flow";
import { SchemaTable } from "../inspector/schemas";
import { useEditor } from "../store";
import { LIMIT, NO_SEARCH, queuePath, queueWords, searches, type Search } from "./queue-words";
import { Nothing, Stale } from "./records";
import { tracing, useTrace } from "../../shared/rows/trace";

const EVERY_MS = 2000;

export function QueuePanel({ pipeline, edge }: { pipeline: string; edge: StreamEdge }) {
  const producer = useElement(pipeline, edge.source);
  const consumer = useElement(pipeline, edge.target);
  const [from, to] = [useName(pipeline, edge.source), useName(pipeline, edge.target)];
  return (
    <div className="inspector">
      <header className="inspector__head">
        <div className="inspector__names">
          <h2 className="inspector__heading queue__ends">
            <span className="ellipsis">{from}</span>
            <ArrowRight aria-label="to" />
            <span className="ellipsis">{to}</span>
          </h2>
          <span className="muted small">The stream between them</span>
        </div>
      </header>
      <div className="drawer">
        <div className="figures">
          <Figure label="Rows" value={rate(producer?.rows_out_per_s)} unit="rows/s" />
          <Figure label="Data" value={bytes(producer?.bytes_out_per_s)} unit="/s" />
          {consumer && (
            <WaitingFigure
              label="Waits"
              waits={{ rows: consumer.lag_rows, why: consumer.lag_unknown ?? undefined }}
              tone={consumer.status === "lagging" ? "lagging" : undefined}
            />
          )}
          <Figure
            label="Latency"
            value={millis(consumer?.latency_ms_p95)}
            title="19 of 20 batches of the reader were done within this time after their oldest row came"
          />
        </div>
        <Columns edge={edge} />
        {producer?.status === "draft" ? (
          <Nothing text="It does not run yet. Deploy the pipeline to see its rows here." />
        ) : (
          <Rows pipeline={pipeline} edge={edge} />
        )}
      </div>
    </div>
  );
}

/** The columns of the deployed version, also where no row has come yet. */
function Columns({ edge }: { edge: StreamEdge }) {
  const schema = useEditor(({ running }) => running?.[`${edge.source}.${edge.sourceHandle ?? "out"}`]);
  if (!schema) return null;
  return (
    <Details title={plural(schema.fields.length, "column")}>
      <SchemaTable schema={schema} />
    </Details>
  );
}

function Rows({ pipeline, edge }: { pipeline: string; edge: StreamEdge }) {
  const [search, setSearch] = useState<Search>(NO_SEARCH);
  const [held, setHeld] = useState(false);
  const [open, setOpen] = useState<ShownRow | null>(null);
  const asked = useSettled(search);
  const stream = `${edge.source}.${edge.sourceHandle ?? "out"}`;
  const { trace, dialog } = useTrace(pipeline);
  const follow = tracing(stream, trace);
  const path = queuePath(pipeline, stream, edge.target, asked);
  const still = held || open !== null || searches(asked);
  const { data, error, reload } = useLoaded(
    path,
    (signal) => get<Queue>(path, signal),
    still ? undefined : EVERY_MS,
  );
  const columns = data ? columnsOf(data.records, data.columns ?? undefined) : [];
  return (
    <div className="stack stack--tight">
      <SearchFields search={search} onChange={setSearch} />
      <div className="row row--between">
        <span className="muted small" role="status">
          {data ? queueWords(data, asked) : ""}
        </span>
        {searches(search) ? (
          <button type="button" className="button button--small" onClick={() => setSearch(NO_SEARCH)}>
            Show the queue
          </button>
        ) : (
          <HoldButton held={held} onHold={setHeld} />
        )}
      </div>
      {error !== undefined && !data && <Problem error={error} onRetry={reload} />}
      {error === undefined && !data && <Skeleton lines={6} />}
      {data && <Stale error={error} />}
      {data && <Table queue={data} columns={columns} open={open} onOpen={setOpen} onTrace={follow} />}
      {open && (
        <WholeRow
          row={open}
          columns={columns}
          onClose={() => setOpen(null)}
          actions={
            <button type="button" className="button button--small" onClick={() => follow(open)}>
              <CornerUpLeft aria-hidden="true" />
              Where did it come from?
            </button>
          }
        />
      )}
      {dialog}
    </div>
  );
}

interface TableProps {
  queue: Queue;
  columns: RowColumn[];
  open: ShownRow | null;
  onOpen: (row: ShownRow | null) => void;
  onTrace: (row: ShownRow) => void;
}

/** What waits lies on top, the next row to be read lowest, as in the tables with the newest row first. */
function Table({ queue, columns, open, onOpen, onTrace }: TableProps) {
  if (queue.records.length === 0) return <Nothing text="There are no such rows." />;
  const newest = [...queue.records].reverse();
  const rows = newest.map((record): ShownRow => ({
    ...rowOf(record, columns),
    ...(record.waits ? { tone: "waits" as const } : {}),
  }));
  const at = newest.findIndex((record) => !record.waits);
  const first = rows[at];
  return (
    <RowTable
      label="Rows of the stream"
      columns={columns}
      rows={rows}
      keyed
      onTrace={onTrace}
      open={open?.id ?? null}
      onOpen={(row) => onOpen(row.id === open?.id ? null : row)}
      divider={queue.known && first && at > 0 ? { before: first.id, words: "Read" } : undefined}
    />
  );
}

function SearchFields({ search, onChange }: { search: Search; onChange: (search: Search) => void }) {
  const take = (change: Partial<Search>) => onChange({ ...search, ...change });
  return (
    <div className="queue__search">
      <input
        className="input"
        type="search"
        aria-label="Key"
        placeholder="Key"
        maxLength={1000}
        value={search.key}
        onChange={(event) => take({ key: event.target.value })}
      />
      <input
        className="input"
        type="search"
        aria-label="Text in the row"
        placeholder="Text in the row"
        maxLength={1000}
        value={search.text}
        onChange={(event) => take({ text: event.target.value })}
      />
      <label className="queue__from small muted" title={`The first ${LIMIT} rows from this time on`}>
        From this time on
        <input
          className="input"
          type="datetime-local"
          step="1"
          value={search.from}
          onChange={(event) => take({ from: event.target.value })}
        />
      </label>
    </div>
  );
}
