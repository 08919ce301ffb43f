import { useShallow } from "zustand/react/shallow";
import { plural, rate } from "../../shared/format";
import { useElements, useLive, useTitle } from "../../shared/live";
import { enters, waiting } from "../../shared/points";
import type { LiveElement } from "../../shared/types";
import { HandoverCard } from "../../shared/ui/handover";
import { Figure, StatusMark, WaitingFigure } from "../../shared/ui/parts";
import { displayName } from "../../shared/document";
import { select, useEditor } from "../store";
import { Percentiles } from "./percentiles";
import { Nothing } from "./records";

/** The element with the longest known latency. */
const slowestOf = (elements: LiveElement[]): LiveElement | null =>
  elements.reduce<LiveElement | null>(
    (most, element) => ((element.latency_ms_p99 ?? -1) > (most?.latency_ms_p99 ?? -1) ? element : most),
    null,
  );

/** The whole pipeline, when no element is selected: its figures, and who runs where. */
export function LiveSummary({ pipeline }: { pipeline: string }) {
  const elements = useElements(pipeline);
  const title = useTitle(pipeline);
  const handovers = useLive(
    useShallow((state) => state.handovers.filter((handover) => handover.pipeline === pipeline).slice(0, 3)),
  );
  const sources = useEditor(
    useShallow((state) =>
      elements
        .filter((element) => state.operators.get(element.type)?.category === "sources")
        .map((element) => element.id),
    ),
  );
  const operators = useEditor((state) => state.operators);
  const slowest = slowestOf(elements);
  const nodes = [...new Set(elements.map((element) => element.node ?? ""))].sort();
  if (elements.every((element) => element.status === "draft")) {
    return (
      <div className="inspector">
        <Nothing text="This pipeline does not run. Deploy it to see its elements live." />
      </div>
    );
  }
  return (
    <div className="inspector">
      <header className="inspector__head">
        <div className="inspector__names">
          <h2 className="inspector__heading">{title}</h2>
          <span className="muted small">Select an element for its charts and actions.</span>
        </div>
      </header>
      <div className="drawer">
        <div className="figures">
          <Figure label="Enters" value={rate(enters(elements, sources))} unit="rows/s" />
          <WaitingFigure label="Waits" waits={waiting(elements)} />
        </div>
        {slowest && (
          <section className="stack stack--tight" aria-label="Slowest element">
            <h3 className="section-title">
              Slowest:{" "}
              <button type="button" className="link" onClick={() => select([slowest.id])}>
                {displayName(slowest, operators.get(slowest.type))}
              </button>
            </h3>
            <Percentiles element={slowest} />
          </section>
        )}
        {nodes.map((node) => (
          <NodeLane
            key={node}
            node={node}
            elements={elements.filter((element) => (element.node ?? "") === node)}
          />
        ))}
        {handovers.length > 0 && (
          <section className="stack stack--tight">
            <h3 className="section-title">Newest handovers</h3>
            {handovers.map((handover) => (
              <HandoverCard key={handover.id} handover={handover} />
            ))}
          </section>
        )}
      </div>
    </div>
  );
}

function NodeLane({ node, elements }: { node: string; elements: LiveElement[] }) {
  const operators = useEditor((state) => state.operators);
  return (
    <section className="lane" aria-label={node ? `Runs on ${node}` : "Runs on no node"}>
      <h3 className="lane__head">
        {node ? <a href={`/nodes/${encodeURIComponent(node)}`}>{node}</a> : "In the dashboard"}
        <span className="muted small">{plural(elements.length, "element")}</span>
      </h3>
      <ul className="outline">
        {elements.map((element) => (
          <li key={element.id}>
            <button type="button" className="outline__item" onClick={() => select([element.id])}>
              <span className="ellipsis">{displayName(element, operators.get(element.type))}</span>
              <StatusMark status={element.status} />
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
