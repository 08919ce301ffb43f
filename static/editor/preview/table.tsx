/** The rows of a preview. */
import { RawTable } from "../../shared/rows/raw-table";
import { RowTable } from "../../shared/rows/table";
import type { ElementPreview } from "../../shared/types";
import { shownWords } from "./path";

type Stream = NonNullable<ElementPreview["output"]>;

export function PreviewTable({
  stream,
  newest,
  nothing,
}: {
  stream: Stream;
  newest: boolean;
  nothing?: string;
}) {
  const { columns, rows, count } = stream;
  if (rows.length === 0) return <p className="muted small">{nothing ?? "No rows come to it."}</p>;
  return (
    <div className="stack stack--tight">
      <RowTable
        label={`Rows of ${stream.title}`}
        columns={columns}
        rows={rows.map((row, at) => ({ ...row, id: String(at) }))}
      />
      <p className="field__help">{shownWords(rows.length, count, newest)}.</p>
    </div>
  );
}

export function PreviewLetters({ letters, count }: { letters: ElementPreview["letters"]; count: number }) {
  return (
    <div className="stack stack--tight">
      <RawTable
        label="Dead letters"
        raws={letters.map((letter, at) => ({ ...letter, id: String(at), at: null, key: null }))}
        reasons
      />
      <p className="field__help">{shownWords(letters.length, count, false)} that it could not take.</p>
    </div>
  );
}
