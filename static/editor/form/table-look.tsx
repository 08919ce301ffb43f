import { useContext, useEffect, useId, useRef, useState } from "react";
import { TriangleAlert } from "lucide-react";
import { request } from "../../shared/api";
import { typesNeeded, typeWords } from "../../shared/column-types";
import { plural } from "../../shared/format";
import { Problem, Skeleton, useLoaded } from "../../shared/ui/parts";
import { Context } from "./leaves";
import {
  question,
  rowsSay,
  timed,
  timeSays,
  withType,
  type TableColumn,
  type TableHint,
  type TablePreview,
} from "./table";
import "./table.css";

/**
 * The first rows of a table file, with which the user chooses its time column and how it is read. `told`:
 * the field already shows what is wrong with the file.
 */
export function TableLook({
  table,
  reference,
  told,
}: {
  table: TableHint;
  reference: string;
  told: boolean;
}) {
  const { values, row } = useContext(Context);
  const asked = question(table, reference, values);
  const { data, error, reload } = useLoaded(JSON.stringify(asked), (signal) =>
    request<TablePreview>("POST", "/files/preview", { body: asked, signal }),
  );
  // while the file is read again in another way, the rows stay
  const before = useRef<TablePreview>(undefined);
  useEffect(() => {
    if (data) before.current = data;
  }, [data]);
  const found = data ?? before.current;
  const reading = table.reads.filter((name) => !table.time.includes(name));
  return (
    <div className="look" aria-busy={!data && !error}>
      {error ? !told && <Problem error={error} onRetry={reload} /> : !found && <Skeleton lines={4} />}
      {found && !error && <Rows table={table} found={found} />}
      {!found?.fixed && (
        <details className="form-more">
          <summary>How the file is read</summary>
          <div className="form">{reading.map(row)}</div>
        </details>
      )}
    </div>
  );
}

function Rows({ table, found }: { table: TableHint; found: TablePreview }) {
  const { values, patch, readOnly } = useContext(Context);
  const group = useId();
  const [column] = table.time;
  // a known recording uses its own time column while none is chosen
  const chosen = String(values[column] ?? (found.fixed ? found.time_column : null) ?? "");
  const choose = (name: string | null) => {
    const best = found.columns.find((each) => each.name === name)?.times[0];
    patch(timed(table, name, best?.format, values), `params.${column}`);
  };
  return (
    <fieldset className="look__rows" data-path={`params.${column}`} disabled={readOnly}>
      <legend className="field__label">First rows</legend>
      {/* it is scrolled by keyboard too */}
      <div className="look__scroll" tabIndex={0} role="group" aria-label="The first rows">
        <table className="look__table">
          <thead>
            <tr>
              {found.columns.map((each) => (
                <th key={each.name} scope="col" data-chosen={each.name === chosen}>
                  <span className="look__name mono" title={each.name}>
                    {each.name}
                  </span>
                  <span className="look__type">{typeWords(each.type)}</span>
                  <label
                    className={`look__time${each.times.length ? " look__time--likely" : ""}`}
                    title={`Take ${each.name} as the time of a row`}
                  >
                    <input
                      type="radio"
                      name={group}
                      aria-label={`Time: ${each.name}`}
                      checked={each.name === chosen}
                      onChange={() => choose(each.name)}
                    />
                    {(each.times.length > 0 || each.name === chosen) && "time"}
                  </label>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {found.first.map((each) => (
              <tr
                key={each.line}
                data-bad={each.bad}
                title={each.bad ? `Line ${each.line} cannot be read` : undefined}
              >
                {found.columns.map(({ name, type }, at) => (
                  <td key={name} className={type === "number" || type === "integer" ? "num" : undefined}>
                    {each.cells[at] ?? ""}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className="field__help">{rowsSay(found)}</p>
      {!found.fixed && (
        <label className="check">
          <input type="radio" name={group} checked={chosen === ""} onChange={() => choose(null)} />
          No time column
        </label>
      )}
      <TimeText key={chosen} table={table} found={found} chosen={chosen} />
      {found.columns.map((each) => each.near && <NearNote key={each.name} found={found} column={each} />)}
      <Unread found={found} />
    </fieldset>
  );
}

const OTHER = "other";

/** What the chosen column says, and in which format it is read. */
function TimeText({ table, found, chosen }: { table: TableHint; found: TablePreview; chosen: string }) {
  const { values, patch, row, readOnly } = useContext(Context);
  const [own, setOwn] = useState(false);
  const id = useId();
  const [, formatName] = table.time;
  if (!chosen)
    return (
      <p className="field__help">
        Each row gets the time at which it is played, evenly at the rate that you set below.
      </p>
    );
  const times = found.columns.find((each) => each.name === chosen)?.times ?? [];
  const format = typeof values[formatName] === "string" ? (values[formatName] as string) : "iso";
  const reading = times.find((each) => each.format === format);
  const known = reading !== undefined && !own;
  return (
    <>
      {known && (
        <p className="field__help">
          {timeSays(chosen, reading).join(" ")}{" "}
          {times.length === 1 && !readOnly && (
            <button type="button" className="link" onClick={() => setOwn(true)}>
              Another format
            </button>
          )}
        </p>
      )}
      {known && times.length === 1 ? null : (
        <div className="field" data-path={`params.${formatName}`}>
          <label className="field__label" htmlFor={id}>
            Read its text as
          </label>
          <select
            className="select"
            id={id}
            value={known ? format : OTHER}
            onChange={(event) => {
              const next = event.target.value;
              setOwn(next === OTHER);
              if (next !== OTHER) patch({ [formatName]: next }, `params.${formatName}`);
            }}
          >
            {times.map((each) => (
              <option key={each.format} value={each.format}>
                {each.words}
              </option>
            ))}
            <option value={OTHER}>another format</option>
          </select>
        </div>
      )}
      {!known && row(formatName)}
    </>
  );
}

/** A column of numbers that is read as text because of a few values. */
function NearNote({ found, column }: { found: TablePreview; column: TableColumn }) {
  const { patch, readOnly } = useContext(Context);
  const { near, name } = column;
  if (!near) return null;
  const whole = found.columns_total === found.columns.length;
  return (
    <p className="field__help">
      {name} is text because line {near.line} has “{near.text}” in it
      {near.others > 1 ? `, and ${plural(near.others - 1, "more row")} like it` : ""}.{" "}
      {!readOnly && whole && (
        <button
          type="button"
          className="link"
          title="Rows with other values then go to the dead letters with the reason"
          onClick={() => patch({ columns: withType(found.columns, name, near.type) }, "params.columns")}
        >
          Read {name} as {typesNeeded([near.type])}
        </button>
      )}
    </p>
  );
}

function Unread({ found }: { found: TablePreview }) {
  const more = found.bad_total - found.bad.length;
  return (
    <>
      {found.bad_total > 0 && (
        <div className="notice notice--warning" role="status">
          <TriangleAlert aria-hidden="true" />
          <div className="stack stack--tight">
            <span>
              {found.bad_total} of {found.whole ? "" : "the first "}
              {plural(found.rows, "row")} cannot be read and {found.bad_total === 1 ? "goes" : "go"} to the
              dead letters.
            </span>
            <ul className="plain-list small">
              {found.bad.map(({ line, reason, text }) => (
                <li key={line}>
                  Line {line}: {reason}. <span className="mono muted">{text}</span>
                </li>
              ))}
              {more > 0 && <li className="muted">and {more.toLocaleString("en")} more</li>}
            </ul>
          </div>
        </div>
      )}
      {found.replaced > 0 && (
        <p className="field__help">
          {plural(found.replaced, "character")} in it {found.replaced === 1 ? "is" : "are"} not UTF-8 and
          shown as �. Save the file as UTF-8 to keep them.
        </p>
      )}
    </>
  );
}
