import { Fragment } from "react";
import { forecastPath } from "../../shared/actions";
import { get } from "../../shared/api";
import { costRows } from "../../shared/move-cost";
import { expectRows, type MoveWay, type RestoreWay } from "../../shared/forecast";
import { nameOf } from "../../shared/status";
import type { Forecast, LiveElement } from "../../shared/types";
import { useLoaded } from "../../shared/ui/parts";
import "./expect.css";

/**
 * How long the action will take and, for a move, what it costs and changes. It is loaded once, when the
 * dialog opens.
 */
export function Expect({
  pipeline,
  element,
  target,
  way,
}: {
  pipeline: string;
  element: LiveElement;
  target: string | null;
  way: MoveWay | RestoreWay;
}) {
  const path = forecastPath(pipeline, element.id);
  const { data, error } = useLoaded(path, (signal) => get<Forecast>(path, signal));
  const rows = expectRows(data, target, way, nameOf(element));
  const moves = way === "standby" || way === "stop-and-copy";
  const costs = moves ? costRows(data, target, way, element.node) : [];
  return (
    <section className="stack stack--tight" aria-label="What to expect">
      <h3 className="field__label">What to expect</h3>
      <dl className={moves ? "expect expect--move" : "expect"}>
        {rows?.map(({ title, value, note }) => (
          <Fragment key={title}>
            <dt>{title}</dt>
            <dd>
              <b>{value}</b>
              <span className="expect__note">{note}</span>
            </dd>
          </Fragment>
        )) ?? (
          <>
            <dt>How long it takes</dt>
            <dd className="muted">{unknownWords(target, data, error)}</dd>
          </>
        )}
        {costs.map(({ title, value }) => (
          <Fragment key={title}>
            <dt>{title}</dt>
            <dd className="num">{value}</dd>
          </Fragment>
        ))}
      </dl>
      {target !== null && <Warnings node={target} warnings={data?.nodes[target]?.warnings ?? []} />}
    </section>
  );
}

/** The reasons against the node. The user may know better and move the element there. */
function Warnings({ node, warnings }: { node: string; warnings: string[] }) {
  if (warnings.length === 0) return null;
  return (
    <div className="notice notice--warning" role="status">
      <ul className="plain-list">
        {warnings.map((warning) => (
          <li key={warning}>
            {node} {warning}.
          </li>
        ))}
      </ul>
    </div>
  );
}

function unknownWords(target: string | null, data: Forecast | undefined, error: unknown): string {
  if (target === null) return "Choose a node.";
  if (data) return `Nothing is known about ${target}.`;
  return error ? "The forecast is not available. You can continue anyway." : "Loading…";
}
