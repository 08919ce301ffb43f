/** What the connector of an element says: connected or not, its rows, and what was lost. */
import { bytes, capitalised, plural } from "../../shared/format";
import type { ConnectorNote, LiveElement, Operator } from "../../shared/types";
import { Ago } from "../../shared/ui/parts";

/** "2 gaps: 15 rows or more are lost", or "" without one. Pure. */
export function gapWords({ gaps_total: gaps, gap_rows_total: rows }: ConnectorNote): string {
  if (!gaps) return "";
  const lost = rows ? `${plural(rows, "row")} or more are lost` : "the number of lost rows is not known";
  return `${plural(gaps, "gap")}: ${lost}.`;
}

export function ConnectorState({
  element,
  operator,
}: {
  element: LiveElement;
  operator: Operator | undefined;
}) {
  const said = element.connector;
  if (!said) return null;
  const source = operator?.category === "sources";
  const state = { connected: "Connected", failing: "Not connected", starting: "It is connecting" }[
    said.state
  ];
  return (
    <section className="stack stack--tight" aria-label="Connection">
      <h3 className="section-title">Connection</h3>
      <p>
        <b>{state}</b> <Ago at={said.since} />. {plural(said.rows_total, "row")}{" "}
        {source ? "came in" : "went out"}
        {said.refused_total > 0 && `, ${plural(said.refused_total, "row")} were refused`} since it was started
        here.
      </p>
      {operator?.delivery_why && (
        <p>
          <b>{capitalised(operator.delivery)}.</b> {operator.delivery_why}
        </p>
      )}
      {said.spool_bytes > 0 && (
        <p>Kafka does not answer. {bytes(said.spool_bytes)} wait on the disk of the node.</p>
      )}
      {said.gaps_total > 0 && <p className="notice notice--warning">{gapWords(said)}</p>}
    </section>
  );
}
