/** The table of rows that an element could not take, and the one that is open, whole. */
import { useState } from "react";
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
  const [open, setOpen] = useState<string | null>(null);
  const { columns, rows } = rawRows(raws);
  const whole = rows.find(({ id }) => id === open);
  return (
    <>
      <RowTable
        label={label}
        columns={columns}
        rows={rows}
        timed={!reasons}
        reasons={reasons}
        keyed={rows.some(({ key }) => key !== null)}
        open={open}
        onOpen={({ id }) => setOpen(id === open ? null : id)}
      />
      {whole && <WholeRow row={whole} columns={columns} onClose={() => setOpen(null)} />}
    </>
  );
}
