/** The tab with the columns that an element reads and writes. */
import type { DocElement, Operator, StreamSchema } from "../../shared/types";
import { parseReference, streamName } from "../../shared/document";
import { fieldWords } from "../passing/passing";
import { useEditor } from "../store";

export function Schemas({ element, operator }: { element: DocElement; operator: Operator | undefined }) {
  const schemas = useEditor((state) => state.schemas);
  const document = useEditor((state) => state.history.present);
  const operators = useEditor((state) => state.operators);
  const inputs = Object.entries(element.inputs ?? {}).map(([port, reference]) => {
    const from = parseReference(reference);
    const name = streamName(document, operators, from);
    return {
      title: operator && operator.inputs.length > 1 ? `In: ${port}, from ${name}` : `In, from ${name}`,
      schema: schemas[`${from.element}.${from.port}`],
    };
  });
  const outputs = (operator?.outputs ?? []).map((port) => ({
    title: (operator?.outputs.length ?? 0) > 1 ? `Out: ${port.name}` : "Out",
    schema: schemas[`${element.id}.${port.name}`],
  }));
  const all = [...inputs, ...outputs];
  if (all.length === 0)
    return <p className="muted small">Connect the element to see the columns that it reads.</p>;
  return (
    <div className="stack">
      {all.map(({ title, schema }) => (
        <section key={title} className="stack stack--tight">
          <h3 className="section-title">{title}</h3>
          <SchemaTable schema={schema} />
        </section>
      ))}
      <p className="field__help">Every record also has its event time in the column _time.</p>
    </div>
  );
}

/** `most`: so many columns are shown. */
export function SchemaTable({ schema, most }: { schema: StreamSchema | undefined; most?: number }) {
  if (!schema)
    return (
      <p className="muted small">
        It is not known yet: an element before this one is missing or has problems.
      </p>
    );
  if (schema.fields.length === 0) return <p className="muted small">No columns.</p>;
  return (
    <table className="table table--tight">
      <tbody>
        {schema.fields.slice(0, most).map((field) => (
          <tr key={field.name}>
            <td className="mono">{field.name}</td>
            <td className="muted">{fieldWords(field)}</td>
            <td>{schema.key === field.name && <span className="badge">key</span>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
