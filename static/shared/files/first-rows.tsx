import { RowTable } from "../rows/table";
import { Skeleton, useLoaded } from "../ui/parts";
import { previewOf } from "./files";
import type { FileDetail } from "./types";
import { rows } from "./words";
import "./files.css";

const ROWS = 6;
const COLUMNS = 12;

/** The first rows of an imported table. */
export function FirstRows({ file }: { file: FileDetail }) {
  const { reading } = file;
  const { data, error } = useLoaded(`first ${file.id}`, (signal) =>
    reading ? previewOf(file.id, { reading }, signal) : Promise.resolve(null),
  );
  if (error || data === null) return null;
  if (!data) return <Skeleton lines={4} />;
  const { columns, rows: all } = data.preview;
  const shown = all.slice(0, ROWS);
  const more = columns.length - COLUMNS;
  return (
    <div className="look">
      <RowTable
        label="The first rows"
        timed={false}
        columns={columns.slice(0, COLUMNS)}
        rows={shown.map((row) => ({
          id: String(row.line),
          at: null,
          key: null,
          values: row.values,
          reason: row.reject,
        }))}
      />
      <p className="field__help">
        The first {shown.length} of {rows(file.rows ?? all.length)}
        {more > 0 && ` and the first ${COLUMNS} of ${columns.length} columns`}.
      </p>
    </div>
  );
}
