/** Tries a connection on a node, and shows the first rows or the reason why not. */
import { useState } from "react";
import { post, problemText } from "../shared/api";
import { useLive } from "../shared/live";
import type { ConnectionItem, ConnectionTested } from "../shared/types";
import { Dialog } from "../shared/ui/dialog";
import { Choice } from "../shared/ui/field";

type Offer = NonNullable<ConnectionTested["offer"]>;

/** Asks for a node, and shows what `run` finds there. `accept` takes over what the system offers. */
export function TestPart({
  run,
  accept,
}: {
  run: (node: string) => Promise<ConnectionTested>;
  accept?: (offer: Offer) => void;
}) {
  const nodes = useLive((state) => state.nodes).filter(({ up }) => up);
  const [node, setNode] = useState("");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState("");
  const [tested, setTested] = useState<ConnectionTested | null>(null);
  const [accepted, setAccepted] = useState(false);
  const chosen = node || nodes[0]?.name || "";
  const offer = accept && tested?.offer;
  const start = () => {
    setBusy(true);
    setRefused("");
    setTested(null);
    setAccepted(false);
    run(chosen)
      .then(setTested)
      .catch((error: unknown) => setRefused(problemText(error)))
      .finally(() => setBusy(false));
  };
  return (
    <div className="stack">
      <div className="row row--wrap">
        <Choice
          label="On the node"
          value={chosen}
          options={nodes.map(({ name }) => [name, name] as [string, string])}
          onChange={setNode}
        />
        <button type="button" className="button" disabled={busy || !chosen} onClick={start}>
          {busy ? "Testing…" : "Test connection"}
        </button>
      </div>
      <div role="status" className="stack">
        {refused && <p className="field__error">{refused}</p>}
        {tested && (
          <div className={`notice notice--${tested.works ? "done" : "error"}`}>
            <p>{tested.words}</p>
            {offer && (
              <button
                type="button"
                className="button button--small"
                onClick={() => {
                  accept(offer);
                  setTested(null);
                  setAccepted(true);
                }}
              >
                {offer.title}
              </button>
            )}
          </div>
        )}
        {accepted && <p>It is in the form now. Test the connection again.</p>}
        {tested && tested.rows.length > 0 && <FirstRows rows={tested.rows} />}
      </div>
    </div>
  );
}

function FirstRows({ rows }: { rows: ConnectionTested["rows"] }) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return (
    <div className="card table-wrap">
      <table className="table">
        <thead>
          <tr>
            {columns.map((each) => (
              <th key={each}>{each}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {columns.map((each) => (
                <td key={each} className="mono">
                  {typeof row[each] === "object" ? JSON.stringify(row[each]) : String(row[each] ?? "")}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function ConnectionTest({ connection, onClose }: { connection: ConnectionItem; onClose: () => void }) {
  return (
    <Dialog
      open
      onClose={onClose}
      size="m"
      title={`Test ${connection.name}`}
      description="The node connects, looks at what is there, and disconnects. Nothing is changed."
    >
      <TestPart run={(node) => post<ConnectionTested>(`/connections/${connection.name}/test`, { node })} />
    </Dialog>
  );
}
