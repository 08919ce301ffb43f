/** The table of rows that an element could not take, and the one that is open, whole. */
import { useState } from "react";
import type { RowColumn, ShownRow } from "./cells";
import { rawRows, type RawRow } from "./raw";
import { RowTable } from "./table";
import { WholeRow } from "./whole";

interface Props {
  label: string;
  raws: readonly RawRow[];
  /** the rows have different reasons, and no times */
  reasons?: boolean;
}

export function RawTable({ label, raws, reasons = false }: Props) {
  // kept as it was: later rows may push it out of the table while somebody reads it
  const [open, setOpen] = useState<{ row: ShownRow; columns: readonly RowColumn[] } | null>(null);
  const { columns, rows } = rawRows(raws);
  const id = open?.row.id ?? null;
  return (
    <>
      <RowTable
        label={label}
        columns={columns}
        rows={rows}
        timed={!reasons}
        reasons={reasons}
        keyed={rows.some(({ key }) => key !== null)}
        open={id}
        onOpen={(row) => setOpen(row.id === id ? null : { row, columns })}
      />
      {open && (
        <WholeRow row={open.row} columns={open.columns} timed={!reasons} onClose={() => setOpen(null)} />
      )}
    </>
  );
}
