/** The panel of a stream that is selected: the columns of its rows. */
import { nameOfId, streamName } from "../../shared/document";
import type { StreamEdge } from "../flow";
import { useEditor } from "../store";
import { SchemaTable } from "./schemas";

export function StreamPanel({ edge }: { edge: StreamEdge }) {
  const document = useEditor((state) => state.history.present);
  const operators = useEditor((state) => state.operators);
  const from = { element: edge.source, port: edge.sourceHandle ?? "out" };
  const schema = useEditor((state) => state.schemas[`${from.element}.${from.port}`]);
  return (
    <div className="inspector">
      <header className="inspector__head">
        <div className="inspector__names">
          <h2 className="inspector__heading ellipsis">{streamName(document, operators, from)}</h2>
          <span className="muted small ellipsis">to {nameOfId(document, operators, edge.target)}</span>
        </div>
      </header>
      <div className="drawer">
        <SchemaTable schema={schema} />
        <p className="field__help">Every row also has its event time in the column _time.</p>
      </div>
    </div>
  );
}
