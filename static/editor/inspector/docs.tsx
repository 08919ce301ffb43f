/** The tab with the operator's documentation. */
import { FOLLOW } from "../../shared/follow";
import type { Operator } from "../../shared/types";
import { Markdown } from "../../shared/ui/markdown";

export function Docs({ operator }: { operator: Operator }) {
  return (
    <div className="stack">
      <Markdown text={operator.docs || operator.summary} />
      <p className="field__help">
        {operator.stateful ? "Keeps state, which moves along with it. " : "Keeps no state. "}
        <b>{FOLLOW[operator.follow].title}.</b> {FOLLOW[operator.follow].text}
        {operator.follow_depends &&
          " With some parameters it is otherwise: its state says so once it is deployed."}
      </p>
      {Object.keys(operator.example ?? {}).length > 0 && (
        <section className="stack stack--tight">
          <h3 className="section-title">Example parameters</h3>
          <pre className="code">{JSON.stringify(operator.example, null, 2)}</pre>
        </section>
      )}
    </div>
  );
}
