/** The import of one file: looked at, decided, under way, done. Wide, over the page. */
import { useEffect, useState } from "react";
import { Dialog, DialogAction } from "../ui/dialog";
import { Problem, Skeleton, useLoaded } from "../ui/parts";
import { toastError } from "../ui/toast";
import { bytes } from "../format";
import { roleReason } from "../page";
import { Bar } from "./bar";
import { Decide } from "./decide";
import { cancelImport, fileOf, importAgain, importFile } from "./files";
import { closeImport, openImport, useImport } from "./import-store";
import { Progress } from "./progress";
import { ReportView } from "./report";
import { openQuestions, readingOf, refusalOf } from "./reading";
import { Trouble } from "./trouble";
import type { FileDetail, Reading } from "./types";
import { filesChanged } from "./use-files";
import { useDecision } from "./use-decision";
import { isBusy } from "./words";
import "./files.css";
import "./import.css";

const POLL_MS = 700;

/** The file, read again while something is under way for it. */
function useFile(id: string) {
  const [every, setEvery] = useState<number | undefined>(POLL_MS);
  const loaded = useLoaded(`file ${id}`, (signal) => fileOf(id, signal), every);
  const { data } = loaded;
  const state = data?.state;
  useEffect(() => {
    if (state) filesChanged();
  }, [state]);
  useEffect(() => setEvery(!data || isBusy(data) ? POLL_MS : undefined), [data]);
  return loaded;
}

/** The import that `openImport` asked for. */
export function ImportHost() {
  const { file } = useImport();
  return file === null ? null : <ImportDialog key={file} id={file} />;
}

function ImportDialog({ id }: { id: string }) {
  const { data: file, error, reload } = useFile(id);
  const [again, setAgain] = useState(false);
  const title = file ? `Import ${file.name}` : "Import a file";
  if (!file)
    return (
      <Dialog open size="xl" title={title} onClose={closeImport}>
        {error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={8} />}
      </Dialog>
    );
  const decides = again || ["asks", "failed", "cancelled"].includes(file.state);
  if (decides && file.detection)
    return (
      <Deciding
        key={file.state}
        file={file}
        again={again}
        onBack={() => setAgain(false)}
        onOrdered={() => {
          setAgain(false);
          reload();
        }}
      />
    );
  if (file.state === "imported" && file.report)
    return <ReportView file={file} onAgain={() => setAgain(true)} onOrdered={ordered} />;
  return <Waiting file={file} reload={reload} />;
}

/** What was imported in another way is another file: it is shown, and chosen where this one was. */
function ordered(other: FileDetail): void {
  const { taken } = useImport.getState();
  taken?.(other.reference);
  openImport(other.id, taken);
}

/** While control looks at the file or imports it, and when that did not work out. */
function Waiting({ file, reload }: { file: FileDetail; reload: () => void }) {
  const act = (order: Promise<unknown>, failed: string) =>
    order.then(reload, (error: unknown) => toastError(failed, error));
  const busy = isBusy(file);
  return (
    <Dialog
      open
      size="m"
      title={`Import ${file.name}`}
      onClose={closeImport}
      description={
        busy ? "You can close this window. The work continues, and the list of files shows it." : undefined
      }
      footer={
        <>
          {busy ? (
            <button
              type="button"
              className="button"
              onClick={() => void act(cancelImport(file.id), "Not cancelled")}
            >
              {file.state === "looking" ? "Cancel" : "Cancel the import"}
            </button>
          ) : (
            <DialogAction
              title="Try again"
              refused={roleReason("editor")}
              run={() => void act(importAnew(file), "Not started")}
            />
          )}
          <button type="button" className="button" onClick={closeImport}>
            Close
          </button>
        </>
      }
    >
      {file.state === "looking" && (
        <div className="stack stack--tight" role="status">
          <span>
            Looking how {file.name} ({bytes(file.size)}) can be read.
          </span>
          <Bar label="Looking at the file" done={0} total={0} />
        </div>
      )}
      {file.state === "importing" && <Progress file={file} />}
      {file.state === "cancelled" && <p>It was cancelled. The file is kept, and nothing was imported.</p>}
      {file.state === "failed" && <Trouble file={file} />}
    </Dialog>
  );
}

/** A file that nobody could look at is looked at again; else it is read as it was decided. */
const importAnew = (file: FileDetail): Promise<unknown> =>
  importFile(file.id, file.reading ?? file.detection?.reading ?? null, {});

function Deciding({
  file,
  again,
  onBack,
  onOrdered,
}: {
  file: FileDetail;
  again: boolean;
  onBack: () => void;
  onOrdered: () => void;
}) {
  const decision = useDecision(file);
  const [busy, setBusy] = useState(false);
  const { detection, changes } = decision;
  const open = openQuestions(detection, changes).length;
  const run = (order: (reading: Reading) => Promise<FileDetail>) => {
    setBusy(true);
    order(readingOf(detection, changes))
      .then((told) => (again ? ordered(told) : onOrdered()))
      .catch((error: unknown) => toastError(`${file.name} was not imported`, error))
      .finally(() => setBusy(false));
  };
  return (
    <Dialog
      open
      size="xl"
      title={again ? `Import ${file.name} in another way` : `Import ${file.name}`}
      onClose={closeImport}
      footer={
        <>
          <span className="import__foot">
            {again
              ? "This makes another file. Elements that read the first file keep it."
              : open === 0 && "The file is read once, as you see it here."}
          </span>
          <button type="button" className="button" disabled={!decision.canUndo} onClick={decision.undo}>
            Undo
          </button>
          <button type="button" className="button" onClick={again ? onBack : closeImport}>
            {again ? "Back" : "Later"}
          </button>
          <DialogAction
            title="Import"
            busy={busy}
            refused={roleReason("editor") ?? refusalOf(detection, changes)}
            run={() =>
              run((reading) =>
                again ? importAgain(file.id, reading) : importFile(file.id, reading, changes.answers),
              )
            }
          />
        </>
      }
    >
      <Decide file={file} decision={decision} />
    </Dialog>
  );
}
