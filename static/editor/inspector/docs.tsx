/** The tab with the operator's documentation. */
import { capitalised } from "../../shared/format";
import { FOLLOW } from "../../shared/follow";
import type { Operator } from "../../shared/types";
import { fieldsOf } from "../form/schema";
import { Markdown } from "../../shared/ui/markdown";

/** Its docs, with parameters called as in the form. */
function withTitles({ docs, summary, params_schema: root }: Operator): string {
  const fields = fieldsOf(root, root, "params");
  return fields.reduce(
    (text, { name, title }) => text.replaceAll(`\`${name}\``, `*${title}*`),
    docs || summary,
  );
}

export function Docs({ operator }: { operator: Operator }) {
  return (
    <div className="stack">
      <Markdown text={withTitles(operator)} />
      <p className="field__help">
        {operator.delivery_why && (
          <>
            <b>{capitalised(operator.delivery)}.</b> {operator.delivery_why}{" "}
          </>
        )}
        {operator.stateful ? "It keeps state, which moves with it. " : "It keeps no state. "}
        <b>{FOLLOW[operator.follow].title}.</b> {FOLLOW[operator.follow].text}
        {operator.follow_depends &&
          " This differs for some parameters: its state shows it once the element is deployed."}
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
