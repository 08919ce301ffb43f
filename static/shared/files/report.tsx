/** What became of an import: counts, what could not be read and where, and the largest jump in time. */
import { useState } from "react";
import { Dialog } from "../ui/dialog";
import { Warning } from "../ui/parts";
import { toastError } from "../ui/toast";
import { typeWords } from "../column-types";
import { count } from "../format";
import { newPipelinePage } from "../address";
import { mayAct, roleReason } from "../page";
import { FirstRows } from "./first-rows";
import { importAgain } from "./files";
import { closeImport, useImport } from "./import-store";
import { Notes } from "./notes";
import type { FileDetail, Report, TimeReading } from "./types";
import { isLongJump, jumpWords, reportWords, spanWords } from "./words";

export function ReportView({
  file,
  onAgain,
  onOrdered,
}: {
  file: FileDetail;
  onAgain: () => void;
  onOrdered: (other: FileDetail) => void;
}) {
  const { report } = file;
  if (!report) return null;
  return (
    <Dialog
      open
      size="l"
      title={file.name}
      description={reportWords(report).join(" ")}
      onClose={closeImport}
      footer={
        <>
          {file.detection && (
            <button
              type="button"
              className="button"
              disabled={roleReason("editor") !== null}
              title={roleReason("editor") ?? "Makes another file. Elements that read this file keep it."}
              onClick={onAgain}
            >
              Import in another way
            </button>
          )}
          <Leave file={file} />
        </>
      }
    >
      <div className="stack">
        <JumpNote file={file} report={report} onOrdered={onOrdered} />
        {report.first_dead && (
          <Warning>
            The first row that goes to the dead letters is line {count(report.first_dead[0])}:{" "}
            <span className="mono">{report.first_dead[1]}</span>
          </Warning>
        )}
        <Columns file={file} report={report} />
        {file.detection && <Notes size={file.size} notes={file.detection.notes} />}
        <FirstRows file={file} />
      </div>
    </Dialog>
  );
}

/** Back to the form that asked for the file, or on to a pipeline that plays it. */
function Leave({ file }: { file: FileDetail }) {
  const { taken } = useImport();
  const onwards = taken === null && mayAct("editor");
  return (
    <>
      <button type="button" className={`button${onwards ? "" : " button--primary"}`} onClick={closeImport}>
        Done
      </button>
      {onwards && (
        <a className="button button--primary" href={newPipelinePage(file.id)}>
          Draw a pipeline with it
        </a>
      )}
    </>
  );
}

/** A jump is shortened to this many usual intervals, but not below a minute. */
const INTERVALS = 10;

function JumpNote({
  file,
  report,
  onOrdered,
}: {
  file: FileDetail;
  report: Report;
  onOrdered: (other: FileDetail) => void;
}) {
  const [busy, setBusy] = useState(false);
  const { largest_jump, usual_interval_s } = report;
  const { reading } = file;
  if (!largest_jump || !isLongJump(largest_jump, usual_interval_s)) return null;
  const to_s = Math.max(60, INTERVALS * (usual_interval_s ?? 0));
  const off = busy || roleReason("editor") !== null;
  const run = (jump: TimeReading["jump"]) => {
    if (!reading?.time) return;
    setBusy(true);
    importAgain(file.id, { ...reading, time: { ...reading.time, jump, jump_s: to_s } })
      .then(onOrdered, (error: unknown) => toastError(`${file.name} was not imported`, error))
      .finally(() => setBusy(false));
  };
  return (
    <Warning>
      <div className="stack stack--tight">
        <span>
          {jumpWords(largest_jump)}{" "}
          {reading?.time?.jump === "keep" || !reading?.time
            ? "A replay at the recorded pace waits there."
            : reading.time.jump === "cut"
              ? `It is shortened to ${spanWords(reading.time.jump_s ?? 0)}.`
              : "Those rows are left out."}
        </span>
        {reading?.time?.jump === "keep" && (
          <span className="row row--wrap">
            <button type="button" className="button button--small" disabled={off} onClick={() => run("cut")}>
              Shorten jumps to {spanWords(to_s)}
            </button>
            <button type="button" className="button button--small" disabled={off} onClick={() => run("skip")}>
              Leave rows that jump out
            </button>
            <span className="muted small">The file is imported again, as another one.</span>
          </span>
        )}
      </div>
    </Warning>
  );
}

function Columns({ file, report }: { file: FileDetail; report: Report }) {
  const types = new Map(file.columns.map((column) => [column.name, column]));
  return (
    <div className="table-wrap report" tabIndex={0} role="group" aria-label="Columns">
      <table className="table">
        <thead>
          <tr>
            <th>Column</th>
            <th>Read as</th>
            <th className="num">Values</th>
            <th className="num">No value</th>
            <th className="num">Not read</th>
            <th>The first that was not read</th>
          </tr>
        </thead>
        <tbody>
          {report.columns.map(({ name, read, missing, unreadable, first_unreadable }) => {
            const column = types.get(name);
            return (
              <tr key={name}>
                <th scope="row" className="mono">
                  {name}
                </th>
                <td>
                  {column && typeWords(column.type)}
                  {column?.unit && <span className="muted"> · {column.unit}</span>}
                </td>
                <td className="num">{count(read)}</td>
                <td className="num">{count(missing)}</td>
                <td className={`num${unreadable > 0 ? " rows__bad" : ""}`}>{count(unreadable)}</td>
                <td>
                  {first_unreadable && (
                    <>
                      line {count(first_unreadable[0])}: <span className="mono">{first_unreadable[1]}</span>
                    </>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
