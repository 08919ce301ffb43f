/** Where a row came from: at each element the rows from which it was made, back to the sources. */
import { useState, type ReactNode } from "react";
import { ArrowLeft } from "lucide-react";
import { get } from "../api";
import { parseReference } from "../document";
import { columnsOf, newestFirst, rowOf, type ShownRow } from "./cells";
import { RowTable } from "./table";
import { WholeRow } from "./whole";
import type { PeekRecord, Trace, TracedStep } from "../types";
import { Dialog } from "../ui/dialog";
import { Problem, Skeleton, useLoaded } from "../ui/parts";
import { placeOf, stepWords, tracePath, type RowPlace } from "./trace-words";
import "./trace.css";

/** `of`: what the row is of, such as a machine */
type Follow = (place: RowPlace, of?: string) => void;
type Traceable = RowPlace & { of?: string | undefined };

/** Opens the trace of a row of a stream, and the dialog that shows it. */
export function useTrace(pipeline: string): { trace: Follow; dialog: ReactNode } {
  const [path, setPath] = useState<Traceable[]>([]);
  const dialog = (
    <TraceDialog
      pipeline={pipeline}
      path={path}
      onFollow={(place) => setPath([...path, place])}
      onBack={() => setPath(path.slice(0, -1))}
      onClose={() => setPath([])}
    />
  );
  return { trace: (place, of) => setPath([{ ...place, of }]), dialog };
}

/** What a table needs to trace its rows, which are those of one stream. */
export const tracing =
  (stream: string, follow: Follow) =>
  ({ record }: ShownRow) => {
    if (record) follow(placeOf(stream, record));
  };

interface Props {
  pipeline: string;
  /** the rows that were traced one after another; the last one is shown */
  path: readonly Traceable[];
  onFollow: Follow;
  onBack: () => void;
  onClose: () => void;
}

function TraceDialog({ pipeline, path, onFollow, onBack, onClose }: Props) {
  const place = path.at(-1);
  return (
    <Dialog
      open={place !== undefined}
      onClose={onClose}
      size="l"
      title={place?.of ? `Where this row of ${place.of} came from` : "Where this row came from"}
      footer={
        path.length > 1 && (
          <button type="button" className="button" onClick={onBack}>
            <ArrowLeft aria-hidden="true" />
            Back to the row before
          </button>
        )
      }
    >
      {place && <Traced pipeline={pipeline} place={place} onFollow={onFollow} />}
    </Dialog>
  );
}

function Traced({ pipeline, place, onFollow }: { pipeline: string; place: RowPlace; onFollow: Follow }) {
  const path = tracePath(pipeline, place);
  const { data, error, reload } = useLoaded(path, (signal) => get<Trace>(path, signal));
  if (error !== undefined && !data) return <Problem error={error} onRetry={reload} />;
  if (!data) return <Skeleton lines={8} />;
  return (
    <ol className="trace">
      <li className="trace__step">
        <h3>{data.title}</h3>
        <p className="muted small">The row. {endOf(data, data.stream)}</p>
        <Rows title={data.title} records={[data.record]} columns={data.columns ?? undefined} />
      </li>
      {data.steps.map((step) => (
        <Step
          key={`${step.element}.${step.port}`}
          step={step}
          end={endOf(data, step.stream)}
          onFollow={onFollow}
        />
      ))}
    </ol>
  );
}

/** Where the rows of a source come from. */
const endOf = ({ ends }: Trace, stream: string): string | undefined =>
  ends.find(({ element }) => element === parseReference(stream).element)?.message;

interface StepProps {
  step: TracedStep;
  end: string | undefined;
  onFollow: Follow;
}

function Step({ step, end, onFollow }: StepProps) {
  return (
    <li className="trace__step">
      <h3>{step.source_title}</h3>
      <p className="muted small">
        {stepWords(step)} {end}
      </p>
      {step.notes.map((note) => (
        <p key={note} className="field__help">
          {note}
        </p>
      ))}
      {step.records.length > 0 && (
        <Rows
          title={step.source_title}
          records={newestFirst(step.records)}
          columns={step.columns}
          onTrace={tracing(step.stream, onFollow)}
        />
      )}
    </li>
  );
}

interface RowsProps {
  title: string;
  records: readonly PeekRecord[];
  columns: Trace["columns"] | undefined;
  onTrace?: (row: ShownRow) => void;
}

function Rows({ title, records, columns: known, onTrace }: RowsProps) {
  const [open, setOpen] = useState<ShownRow | null>(null);
  const columns = columnsOf(records, known ?? undefined);
  return (
    <>
      <RowTable
        label={`Rows of ${title}`}
        columns={columns}
        rows={records.map((record) => rowOf(record, columns))}
        keyed={records.some(({ key }) => key !== null)}
        onTrace={onTrace}
        open={open?.id ?? null}
        onOpen={(row) => setOpen(row.id === open?.id ? null : row)}
      />
      {open && <WholeRow row={open} columns={columns} onClose={() => setOpen(null)} />}
    </>
  );
}
