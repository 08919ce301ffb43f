import { useState } from "react";
import { cancelImport, fileOf } from "../../shared/files/files";
import { Bar } from "../../shared/files/bar";
import { FirstRows } from "../../shared/files/first-rows";
import { openImport } from "../../shared/files/import-store";
import { Progress } from "../../shared/files/progress";
import { Trouble } from "../../shared/files/trouble";
import type { StoredFile } from "../../shared/files/types";
import { isLongJump, jumpWords, reportWords } from "../../shared/files/words";
import { Skeleton, useLoaded, Warning } from "../../shared/ui/parts";
import { toastError } from "../../shared/ui/toast";
import { setFile } from "../uploading";
import { WizardDialog } from "../wizard/dialog";

/** What a table file is: on its way, waiting for a decision, or read, with its first rows. */
export function TableState({
  file,
  element,
  parameter,
  readOnly,
}: {
  file: StoredFile;
  element: string;
  parameter: string;
  readOnly: boolean;
}) {
  const open = () => openImport(file.id, (reference) => void setFile(element, parameter, reference));
  switch (file.state) {
    case "looking":
      return (
        <>
          <Bar label={`Finding the columns of ${file.name}`} done={0} total={0} />
          <p className="field__help">Fogline may have a question then.</p>
        </>
      );
    case "asks":
      return (
        <div className="notice notice--warning">
          <div className="stack stack--tight">
            <span>It waits for you: something in it can be read in more than one way.</span>
            <span>
              <button type="button" className="button button--primary button--small" onClick={open}>
                Answer its questions
              </button>
            </span>
          </div>
        </div>
      );
    case "importing":
      return (
        <>
          <Progress file={file} />
          {!readOnly && (
            <button
              type="button"
              className="link"
              onClick={() =>
                void cancelImport(file.id).catch((error: unknown) => toastError("Not cancelled", error))
              }
            >
              Cancel the import
            </button>
          )}
        </>
      );
    case "failed":
    case "cancelled":
      return (
        <>
          {file.state === "failed" ? (
            <Trouble file={file} />
          ) : (
            <p className="field__help">Its import was cancelled, so it has no rows yet.</p>
          )}
          <span>
            <button type="button" className="button button--small" onClick={open}>
              {file.state === "failed" ? "Change how it is read" : "Import it"}
            </button>
          </span>
        </>
      );
    default:
      return <Imported file={file} source={readOnly ? null : element} onOpen={open} />;
  }
}

function Imported({
  file,
  source,
  onOpen,
}: {
  file: StoredFile;
  /** the element that plays it; null: nothing can be drawn */
  source: string | null;
  onOpen: () => void;
}) {
  const [asked, setAsked] = useState(false);
  const { data } = useLoaded(`imported ${file.id}`, (signal) => fileOf(file.id, signal));
  if (!data?.report) return <Skeleton lines={4} />;
  const { report, reading } = data;
  const { largest_jump } = report;
  return (
    <>
      <p className="field__help">
        {reportWords(report).join(" ")}
        {!file.has_time &&
          " Its rows have no time: they are played evenly, at the pace that you set below."}{" "}
        <button type="button" className="link" onClick={onOpen}>
          What was read
        </button>
      </p>
      {reading?.time?.jump === "keep" &&
        largest_jump &&
        isLongJump(largest_jump, report.usual_interval_s) && (
          <Warning>
            {jumpWords(largest_jump)}{" "}
            <button type="button" className="link" onClick={onOpen}>
              Shorten it or leave rows out
            </button>
          </Warning>
        )}
      {source !== null && reading && (
        <span>
          <button
            type="button"
            className="button button--primary button--small"
            onClick={() => setAsked(true)}
          >
            What do you want of it?
          </button>
        </span>
      )}
      {asked && source !== null && (
        <WizardDialog source={source} columns={reading?.columns ?? []} onClose={() => setAsked(false)} />
      )}
      <FirstRows file={data} />
    </>
  );
}
