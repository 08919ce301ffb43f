import { useContext, useEffect, useRef } from "react";
import { Upload } from "lucide-react";
import { get, request } from "../../shared/api";
import { ago, bytes } from "../../shared/format";
import { UploadList } from "../../shared/files/upload-list";
import { useDropped } from "../../shared/files/use-dropped";
import type { UploadedFile } from "../../shared/types";
import { useLoaded } from "../../shared/ui/parts";
import { ownerOf, uploadFor } from "../uploading";
import { acceptOf, isFor } from "./files";
import { Context, type LeafProps } from "./leaves";
import { proposed, tableOf, type TablePreview } from "./table";
import { TableLook } from "./table-look";

/** A data file that is chosen or uploaded. The first rows of a table are shown. */
export function FileField({ field, value, onChange, id, invalid, describedBy }: LeafProps) {
  const { readOnly, values, patch, element } = useContext(Context);
  const chooser = useRef<HTMLInputElement>(null);
  const { data: files = [], reload } = useLoaded("files", (signal) => get<UploadedFile[]>("/files", signal));
  const shipped = (field.schema["x-files"] as { reference: string; name: string }[] | undefined) ?? [];
  const reference = typeof value === "string" ? value : "";
  const known = files.find((file) => file.reference === reference);
  const offered = files.filter((file) => file === known || isFor(field.schema, file.name));
  const table = tableOf(field.schema);

  const take = (chosen: string, found: TablePreview | null) => {
    if (table && found) patch({ ...proposed(table, found, values), [field.name]: chosen }, field.path);
    else onChange(chosen, field.path);
  };
  const turn = useRef(0);
  const put = useRef<typeof take | null>(take);
  useEffect(() => {
    put.current = take;
    return () => {
      put.current = null;
    };
  });
  /** Sets the file and the parameters that follow from its content, as one step of undo. */
  const choose = async (chosen: string) => {
    const mine = ++turn.current;
    const looked =
      table &&
      (await request<TablePreview>("POST", "/files/preview", { body: { path: chosen } }).catch(() => null));
    if (mine === turn.current) put.current?.(chosen, looked ?? null);
  };
  const upload = (file: File) =>
    uploadFor(element, field.name, file, (stored) => {
      if (!put.current) return false;
      reload();
      void choose(stored);
      return true;
    });
  const dropped = useDropped(upload);
  return (
    <div className="stack stack--tight drop" {...(readOnly ? {} : dropped.on)} data-over={dropped.over}>
      <div className="row">
        <select
          className="select"
          id={id}
          value={reference}
          disabled={readOnly}
          aria-invalid={invalid}
          aria-describedby={describedBy}
          onChange={(event) => void choose(event.target.value)}
        >
          {!known && !shipped.some((file) => file.reference === reference) && (
            <option value={reference} disabled={reference === ""}>
              {reference === "" ? "Choose or upload a file" : "A file that is not here"}
            </option>
          )}
          {offered.length > 0 && (
            <optgroup label="Uploaded">
              {offered.map((file) => (
                <option key={file.reference} value={file.reference}>
                  {file.name}, {bytes(file.size)}, {ago(file.created_at)}
                </option>
              ))}
            </optgroup>
          )}
          {shipped.length > 0 && (
            <optgroup label="Samples">
              {shipped.map((file) => (
                <option key={file.reference} value={file.reference}>
                  {file.name}
                </option>
              ))}
            </optgroup>
          )}
        </select>
        <button type="button" className="button" disabled={readOnly} onClick={() => chooser.current?.click()}>
          <Upload aria-hidden="true" />
          Upload
        </button>
      </div>
      <input
        ref={chooser}
        type="file"
        hidden
        aria-label="Data file"
        accept={acceptOf(field.schema).join(",")}
        onChange={(event) => {
          const file = event.target.files?.[0];
          if (file) upload(file);
          event.target.value = "";
        }}
      />
      <p className="visually-hidden" role="status">
        {known ? `${known.name}, ${bytes(known.size)}` : ""}
      </p>
      <UploadList owner={ownerOf(element, field.name)} />
      {table && reference !== "" && (
        <TableLook key={reference} table={table} reference={reference} told={invalid} />
      )}
    </div>
  );
}
