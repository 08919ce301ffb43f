/** The uploaded files: what they are, who uses them, and what can be done with each. */
import { EllipsisVertical, FileUp, Trash2, TriangleAlert, Workflow } from "lucide-react";
import { newPipelinePage } from "../address";
import { bytes, count } from "../format";
import { roleReason } from "../page";
import { Menu } from "../ui/menu";
import { Ago, Problem, Skeleton } from "../ui/parts";
import { Bar } from "./bar";
import { cancelImport, deleteFile, deleteRefusal, importFile } from "./files";
import { FileChooser } from "./file-chooser";
import { openImport } from "./import-store";
import type { StoredFile } from "./types";
import { UploadList } from "./upload-list";
import { startUpload } from "./uploads";
import { isBusy, stateTone, stateWords, unreadWords, usersOf } from "./words";
import { toastError } from "../ui/toast";
import { follow } from "./follow";
import { useDropped } from "./use-dropped";
import { useFiles } from "./use-files";
import "./files.css";

const FILES = ".csv,.tsv,.txt,.dat,.gz,.bz2,.xz,.zst,.zip,.xlsx,.json,.jsonl,.ndjson,.parquet,.onnx";

export function UploadButton({
  onTaken,
  primary,
}: {
  onTaken: (file: StoredFile) => void;
  primary?: boolean;
}) {
  const why = roleReason("editor");
  return (
    <FileChooser
      label="Data file"
      title={why ?? "You can also drop a file here"}
      accept={FILES}
      disabled={why !== null}
      multiple
      primary={primary}
      onFile={(file) => startUpload(file, onTaken)}
    />
  );
}

export function FileList() {
  const { data: files, error, reload } = useFiles();
  const taken = (file: StoredFile) => {
    reload();
    void follow(file.id);
  };
  const dropped = useDropped((file) => startUpload(file, taken));
  if (!files) return error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={5} height={40} />;
  return (
    <div className="stack stack--tight drop" {...dropped.on} data-over={dropped.over}>
      <UploadList />
      {files.length === 0 ? (
        <div className="card empty">
          <FileUp aria-hidden="true" />
          <h2>Upload a file to play it into a pipeline</h2>
          <p>
            Drop one here, or choose one: CSV and other text tables, Excel, JSON lines, Parquet, also as .gz,
            .bz2, .xz, .zst or .zip. If something can be read in two ways, Fogline asks you.
          </p>
          <UploadButton onTaken={taken} primary />
        </div>
      ) : (
        <>
          <div className="row">
            <UploadButton onTaken={taken} primary />
            <span className="muted small">or drop a file here</span>
          </div>
          <div className="card table-wrap">
            <table className="table table--rows table--files">
              <thead>
                <tr>
                  <th>Name</th>
                  <th>State</th>
                  <th className="num">Rows</th>
                  <th className="num">Size</th>
                  <th>Used by</th>
                  <th className="roomy-only">Uploaded</th>
                  <th>
                    <span className="visually-hidden">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {files.map((file) => (
                  <Row key={file.id} file={file} reload={reload} />
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </div>
  );
}

function Row({ file, reload }: { file: StoredFile; reload: () => void }) {
  const { id, name, state, rows, size, table_bytes, uses, created_at, created_by, error, progress } = file;
  const users = usersOf(uses);
  const unread = unreadWords(file);
  return (
    <tr>
      <td className="file__title">
        {state === "model" ? (
          <b>{name}</b>
        ) : (
          <button type="button" className="link file__name" onClick={() => openImport(id)}>
            {name}
          </button>
        )}
      </td>
      <td>
        {state === "asks" ? (
          <button type="button" className="button button--small" onClick={() => openImport(id)}>
            <TriangleAlert aria-hidden="true" />
            Answer its questions
          </button>
        ) : (
          <span className={`status status--${stateTone(state)}`} title={error?.what}>
            <span className="status__dot" aria-hidden="true" />
            {stateWords(state)}
          </span>
        )}
        {unread && (
          <button
            type="button"
            className="link file__unread"
            title="See these rows, and what happens to them"
            onClick={() => openImport(id)}
          >
            {unread}
          </button>
        )}
        {progress && (
          <Bar label={`Import of ${name}`} done={progress.bytes_done} total={progress.bytes_total} />
        )}
      </td>
      <td className="num file__rows">{count(rows)}</td>
      <td className="num" title={table_bytes ? `${bytes(table_bytes)} more for its table` : undefined}>
        {bytes(size)}
      </td>
      <td className="file__users" title={users}>
        {uses.length === 0 && <span className="muted">nobody</span>}
        {uses.map((use, index) => (
          <span key={usersOf([use])}>
            {index > 0 && ", "}
            <a
              href={
                use.where === "template" ? "/templates/" : `/pipelines/${encodeURIComponent(use.pipeline)}`
              }
            >
              {usersOf([use])}
            </a>
          </span>
        ))}
      </td>
      <td className="roomy-only file__at">
        <Ago at={created_at} />
        {created_by && <span className="muted"> by {created_by}</span>}
      </td>
      <td className="file__actions">
        <Actions file={file} reload={reload} />
      </td>
    </tr>
  );
}

function Actions({ file, reload }: { file: StoredFile; reload: () => void }) {
  const { id, name, state } = file;
  const editor = roleReason("editor");
  const order = (asked: Promise<unknown>, failed: string) =>
    void asked.then(reload, (error: unknown) => toastError(failed, error));
  return (
    <Menu
      trigger={
        <button
          type="button"
          className="button button--quiet button--icon button--small"
          aria-label={`Actions for ${name}`}
        >
          <EllipsisVertical aria-hidden="true" />
        </button>
      }
      entries={[
        ...(state === "imported"
          ? [
              {
                title: "Draw a pipeline with it",
                icon: <Workflow aria-hidden="true" />,
                disabled: editor,
                run: () => window.location.assign(newPipelinePage(id)),
              },
            ]
          : []),
        ...(state === "model"
          ? []
          : [{ title: state === "imported" ? "What was read" : "Open", run: () => openImport(id) }]),
        ...(isBusy(file)
          ? [
              {
                title: "Cancel the import",
                disabled: editor,
                run: () => order(cancelImport(id), `The import of ${name} was not cancelled`),
              },
            ]
          : []),
        ...(state === "cancelled"
          ? [
              {
                title: "Import it",
                disabled: editor,
                run: () => order(importFile(id, null, {}), `${name} is not imported`),
              },
            ]
          : []),
        {
          title: `Delete ${name}`,
          icon: <Trash2 aria-hidden="true" />,
          danger: true,
          disabled: deleteRefusal(file),
          run: () => void deleteFile(file).then((gone) => gone && reload()),
        },
      ]}
    />
  );
}
