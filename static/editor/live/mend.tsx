/** The rows of a reason's dead letters as a grid: their cells are changed, then they are replayed. */
import { useId, useState } from "react";
import { ApiError, get, post } from "../../shared/api";
import { typeWords } from "../../shared/column-types";
import { plural } from "../../shared/format";
import { WholeRow } from "../../shared/rows/whole";
import type { LetterOrder, LetterRows } from "../../shared/types";
import { Dialog, DialogAction } from "../../shared/ui/dialog";
import { Edges } from "../../shared/ui/edges";
import { Problem, Skeleton, useLoaded } from "../../shared/ui/parts";
import { toast } from "../../shared/ui/toast";
import { lettersOrderPath, type Of } from "./letter-actions";
import { mendPath, MENDED_MAX } from "./letters-words";
import {
  AT,
  changed,
  columnsOf,
  faultsIn,
  faultsTold,
  isTable,
  pageOf,
  pasted,
  placeOf,
  replacedIn,
  replayBody,
  rowsOf,
  wholeOf,
  type Faults,
  type MendColumn,
  type MendRow,
} from "./mend-rows";
import "../../shared/rows/table.css";
import "./mend.css";

const PAGE = 50;

interface Props {
  of: Of;
  reason: string;
  text: string;
  /** what to know before a replay */
  note: string | null;
  onClose: (done: boolean) => void;
}

export function MendDialog({ of, reason, text, note, onClose }: Props) {
  const path = mendPath(of.pipeline, of.element, reason, text);
  const { data, error, reload } = useLoaded(path, (signal) => get<LetterRows>(path, signal));
  if (data && data.rows.length > 0)
    return <Grid of={of} reason={reason} note={note} loaded={data} onClose={onClose} />;
  return (
    <Dialog open onClose={() => onClose(false)} title="Mend rows" description={reason} size="xl">
      {error !== undefined && <Problem error={error} onRetry={reload} />}
      {!data && error === undefined && <Skeleton lines={6} />}
      {data && <p>These rows are no dead letters any more.</p>}
    </Dialog>
  );
}

function Grid({ of, reason, note, loaded, onClose }: Omit<Props, "text"> & { loaded: LetterRows }) {
  const columns = columnsOf(loaded);
  const [rows, setRows] = useState(() => rowsOf(loaded));
  const [told, setTold] = useState<Faults>(new Map());
  const [failure, setFailure] = useState<unknown>(undefined);
  const [busy, setBusy] = useState(false);
  const [page, setPage] = useState(0);
  const faults = new Map([...told, ...faultsIn(rows, columns)]);
  const words = plural(rows.length, "row");
  const change = (next: MendRow[]) => {
    setRows(next);
    setTold(new Map());
    setFailure(undefined);
  };
  const replay = async () => {
    setBusy(true);
    try {
      await post<LetterOrder>(`${lettersOrderPath(of)}/replay`, replayBody(rows, columns, reason));
      toast({ tone: "done", title: `${words} come back` });
      onClose(true);
    } catch (error) {
      setTold(faultsTold(error instanceof ApiError ? (error.problem.faults ?? []) : []));
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Dialog
      open
      onClose={() => onClose(false)}
      title={`Mend ${words}`}
      description={`${reason}. ${note ?? ""}`}
      size="xl"
      footer={
        <>
          <span className="mend__state" role="status">
            {faults.size > 0 ? `${plural(faults.size, "cell")} must be changed.` : "All cells fit."}
          </span>
          <button type="button" className="button" onClick={() => onClose(false)}>
            Cancel
          </button>
          <DialogAction title={`Replay ${words}`} busy={busy || faults.size > 0} run={() => void replay()} />
        </>
      }
    >
      {loaded.more && (
        <p className="muted">There are more: the newest {MENDED_MAX} are here, the others come next.</p>
      )}
      {failure !== undefined && <Problem error={failure} />}
      <ReplaceAll columns={columns} run={(at, from, to) => change(replacedIn(rows, at, from, to))} />
      <Cells columns={columns} rows={rows} topic={loaded.topic} page={page} faults={faults} change={change} />
      <Pages count={Math.ceil(rows.length / PAGE)} page={page} go={setPage} rows={rows} faults={faults} />
    </Dialog>
  );
}

const titleOf = ({ name }: MendColumn): string => (name === AT ? "Event time" : name);

/** One change for all rows. */
function ReplaceAll({
  columns,
  run,
}: {
  columns: MendColumn[];
  run: (column: number, from: string, to: string) => void;
}) {
  const [column, setColumn] = useState(Math.min(1, columns.length - 1));
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const id = useId();
  return (
    <form
      className="row mend__all"
      aria-label="Change all rows"
      onSubmit={(event) => {
        event.preventDefault();
        run(column, from, to);
      }}
    >
      <label htmlFor={`${id}-in`}>In</label>
      <select
        id={`${id}-in`}
        className="select"
        value={column}
        onChange={(event) => setColumn(Number(event.target.value))}
      >
        {columns.map((each, index) => (
          <option key={each.name} value={index}>
            {titleOf(each)}
          </option>
        ))}
      </select>
      <label htmlFor={`${id}-from`}>replace</label>
      <input
        id={`${id}-from`}
        className="input"
        placeholder="the whole cell"
        value={from}
        onChange={(event) => setFrom(event.target.value)}
      />
      <label htmlFor={`${id}-to`}>by</label>
      <input
        id={`${id}-to`}
        className="input"
        placeholder="nothing"
        value={to}
        onChange={(event) => setTo(event.target.value)}
      />
      <button type="submit" className="button">
        Replace in all rows
      </button>
    </form>
  );
}

interface CellsProps {
  columns: MendColumn[];
  rows: MendRow[];
  /** in which the rows lie */
  topic: string;
  page: number;
  faults: Faults;
  change: (rows: MendRow[]) => void;
}

function Cells({ columns, rows, topic, page, faults, change }: CellsProps) {
  const [open, setOpen] = useState<number | null>(null);
  const whole = rows.find(({ offset }) => offset === open);
  return (
    <>
      <Edges className="rowtable-place">
        {(ref) => (
          <div
            ref={ref}
            className="rowtable mend__table"
            tabIndex={0}
            role="region"
            aria-label="Rows to mend"
          >
            <table className="rowtable__table">
              <thead>
                <tr>
                  <th scope="col">Letter</th>
                  <th scope="col" title={`Partition and offset in ${topic}`}>
                    Lies at
                  </th>
                  {columns.map((column) => (
                    <th key={column.name} scope="col">
                      <span className="rowtable__name mono">{titleOf(column)}</span>
                      {column.name !== AT && <span className="rowtable__type">{typeWords(column.type)}</span>}
                    </th>
                  ))}
                  <th scope="col">As it came</th>
                  <th scope="col">Key</th>
                </tr>
              </thead>
              <tbody>
                {pageOf(rows, page, PAGE).map(([row, place]) => (
                  <tr key={row.offset} data-open={open === row.offset}>
                    <th scope="row" className="num">
                      <button
                        type="button"
                        className="rowtable__open"
                        aria-label={`Open letter ${row.offset}`}
                        onClick={() => setOpen(open === row.offset ? null : row.offset)}
                      >
                        {row.offset}
                      </button>
                    </th>
                    <td className="num">{row.liesAt}</td>
                    {columns.map((column, index) => (
                      <td key={column.name}>
                        <Cell
                          label={`${titleOf(column)} of letter ${row.offset}`}
                          text={row.cells[index] ?? ""}
                          fault={faults.get(placeOf(row, column))}
                          write={(text) => change(changed(rows, place, index, text))}
                          paste={(text) => change(pasted(rows, place, index, text))}
                        />
                      </td>
                    ))}
                    <td className="mono" title={`${row.reason}\n${row.raw}`}>
                      {row.raw}
                    </td>
                    <td className="muted">{row.key}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Edges>
      {whole && (
        <WholeRow row={wholeOf(whole, topic)} columns={columns.slice(1)} onClose={() => setOpen(null)} />
      )}
    </>
  );
}

interface CellProps {
  label: string;
  text: string;
  fault: string | undefined;
  write: (text: string) => void;
  paste: (text: string) => void;
}

function Cell({ label, text, fault, write, paste }: CellProps) {
  const why = useId();
  return (
    <>
      <input
        className="input mend__cell"
        aria-label={label}
        aria-invalid={fault !== undefined}
        aria-describedby={fault === undefined ? undefined : why}
        value={text}
        onChange={(event) => write(event.target.value)}
        onPaste={(event) => {
          const given = event.clipboardData.getData("text/plain");
          if (!isTable(given)) return;
          event.preventDefault();
          paste(given);
        }}
      />
      {fault !== undefined && (
        <span id={why} className="field__error">
          {fault}
        </span>
      )}
    </>
  );
}

interface PagesProps {
  count: number;
  page: number;
  go: (page: number) => void;
  rows: MendRow[];
  faults: Faults;
}

function Pages({ count, page, go, rows, faults }: PagesProps) {
  if (count < 2) return null;
  const wrong = new Set([...faults.keys()].map((place) => place.split(".", 1)[0]));
  const next = rows.findIndex(
    (row, index) => Math.floor(index / PAGE) !== page && wrong.has(String(row.offset)),
  );
  return (
    <div className="row mend__pages" role="group" aria-label="Pages">
      <button
        type="button"
        className="button button--small"
        disabled={page === 0}
        onClick={() => go(page - 1)}
      >
        Previous
      </button>
      <span className="num">
        Page {page + 1} of {count}
      </span>
      <button
        type="button"
        className="button button--small"
        disabled={page === count - 1}
        onClick={() => go(page + 1)}
      >
        Next
      </button>
      {next >= 0 && (
        <button type="button" className="button button--small" onClick={() => go(Math.floor(next / PAGE))}>
          Go to cells that must be changed
        </button>
      )}
    </div>
  );
}
