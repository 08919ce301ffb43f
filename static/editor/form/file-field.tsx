import { useContext, useEffect, useState } from "react";
import { filesPage } from "../../shared/address";
import { ago, bytes } from "../../shared/format";
import type { StoredFile } from "../../shared/files/types";
import { FileChooser } from "../../shared/files/file-chooser";
import { UploadList } from "../../shared/files/upload-list";
import { useDropped } from "../../shared/files/use-dropped";
import { useFiles } from "../../shared/files/use-files";
import { stateWords } from "../../shared/files/words";
import { useEditor } from "../store";
import { ownerOf, uploadFor } from "../uploading";
import { acceptOf, isFor } from "./files";
import { Context, type LeafProps } from "./leaves";
import { tableOf, timed } from "./table";
import { TableState } from "./table-state";

/** A data file that is chosen or uploaded. Of a table, what its import made of it is shown. */
export function FileField({ field, value, onChange, id, invalid, describedBy }: LeafProps) {
  const { readOnly, values, patch, element } = useContext(Context);
  const { data, error } = useFiles();
  const files = data ?? [];
  const pipeline = useEditor((state) => state.name);
  const shipped = (field.schema["x-files"] as { reference: string; name: string }[] | undefined) ?? [];
  const reference = typeof value === "string" ? value : "";
  const unknown = useUnknown(reference, data, error !== undefined);
  const known = files.find((file) => file.reference === reference);
  const isShipped = shipped.some((file) => file.reference === reference);
  const offered = files.filter((file) => file === known || isFor(field.schema, file.name));
  const table = tableOf(field.schema);

  const choose = (chosen: string) => {
    const file = files.find((each) => each.reference === chosen);
    if (table) patch({ ...timed(table, file?.has_time ?? true, values), [field.name]: chosen }, field.path);
    else onChange(chosen, field.path);
  };
  const hasTime = known?.has_time ?? null;
  useEffect(() => {
    // without a time, rows are played at a pace: known once the file is imported
    const changes = table && hasTime === false && !readOnly ? timed(table, false, values) : {};
    if (Object.keys(changes).length) patch(changes, field.path);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [hasTime, reference]);
  const upload = (file: File) => uploadFor(element, field.name, file);
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
          onChange={(event) => choose(event.target.value)}
        >
          {!known && !isShipped && (
            <option value={reference} disabled={reference === ""}>
              {unknown}
            </option>
          )}
          {offered.length > 0 && (
            <optgroup label="Uploaded">
              {offered.map((file) => (
                <option key={file.reference} value={file.reference}>
                  {optionWords(file)}
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
        <FileChooser
          label="Data file"
          title="You can also drop a file here, or onto the canvas"
          accept={acceptOf(field.schema).join(",")}
          disabled={readOnly}
          onFile={upload}
        />
      </div>
      <p className="visually-hidden" role="status">
        {known ? `${known.name}, ${bytes(known.size)}, ${stateWords(known.state)}` : ""}
      </p>
      <a className="link small" href={filesPage(pipeline, element)}>
        All files
      </a>
      <UploadList owner={ownerOf(element, field.name)} />
      {known && table && (
        <TableState file={known} element={element} parameter={field.name} readOnly={readOnly} />
      )}
    </div>
  );
}

/** What the field says of a file that the list of files does not have. One that was just set may be on its way. */
function useUnknown(reference: string, files: readonly StoredFile[] | undefined, fails: boolean): string {
  const [since, setSince] = useState({ reference, files });
  if (since.reference !== reference) setSince({ reference, files });
  if (reference === "") return "Choose or upload a file";
  const isOld = files === undefined || since.files === files || since.reference !== reference;
  if (!isOld) return "A file that is not here";
  return fails ? "The list of files cannot be read now" : "Looking for the file…";
}

const optionWords = ({ name, size, created_at, state }: StoredFile): string =>
  [
    name,
    bytes(size),
    ago(created_at),
    ...(state === "imported" || state === "model" ? [] : [stateWords(state)]),
  ].join(", ");
