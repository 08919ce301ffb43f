import { bytes, plural } from "../format";

/** What the look at a file has found, such as digits that a workbook has not kept. */
export function Notes({ size, notes }: { size: number; notes: readonly string[] }) {
  if (notes.length === 0) return null;
  return (
    <details className="form-more import__notes">
      <summary>
        What was found in the {bytes(size)} ({plural(notes.length, "note")})
      </summary>
      <ul>
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </details>
  );
}
