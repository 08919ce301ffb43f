/** A template: its picture, what it is about, and what each of its elements does. */
import { displayName, elementsOf, replaceWords } from "../shared/document";
import { capitalised } from "../shared/format";
import { mount } from "../shared/mount";
import { page } from "../shared/page";
import type { DocElement, Operator, TemplatePage as Template } from "../shared/types";
import { OperatorIcon } from "../shared/ui/icons";
import { Markdown } from "../shared/ui/markdown";
import { Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { Frame, Section } from "../shared/ui/frame";
import { drawnOf } from "../shared/pipeline-picture";
import { PipelinePicture } from "../shared/ui/pipeline-picture";
import { DeleteButton, UseButtons, UseProblem, useUse } from "./template-actions";
import { withOperators } from "./template-data";
import { Facts } from "./template-facts";
import "./monitor.css";
import "./templates.css";

type Operators = ReadonlyMap<string, Operator>;

function TemplatePage() {
  const name = page.template ?? "";
  const { data, error, reload } = useLoaded(`template ${name}`, (signal) =>
    withOperators<Template>(`/templates/${encodeURIComponent(name)}`, signal),
  );
  const use = useUse(data?.found);
  return (
    <Frame
      crumbs={[["Templates", "/templates/"]]}
      title={data?.found.title ?? name}
      actions={
        data && (
          <>
            <DeleteButton template={data.found} />
            <UseButtons {...use} />
          </>
        )
      }
    >
      <UseProblem {...use} />
      {data ? (
        <Shown template={data.found} operators={data.operators} />
      ) : error ? (
        <Problem error={error} onRetry={reload} />
      ) : (
        <Skeleton lines={5} height={60} />
      )}
    </Frame>
  );
}

function Shown({ template, operators }: { template: Template; operators: Operators }) {
  const { title, document, elements, replace } = template;
  const byId = new Map(elementsOf(document).map((element) => [element.id, element]));
  return (
    <>
      <div className="card template-picture" tabIndex={0} role="region" aria-label="Picture of the pipeline">
        <PipelinePicture title={title} elements={drawnOf(document, operators)} named />
      </div>
      <div className="template-words">
        <section>
          <h2 className="visually-hidden">What it is about</h2>
          <Markdown text={template.text || template.description} />
        </section>
        <div className="card card__body">
          <Facts template={template} />
        </div>
      </div>
      <Section title="Element by element">
        <ol className="card template-elements">
          {Object.entries(elements).map(([id, words]) => {
            const element = byId.get(id);
            return (
              element && (
                <li key={id}>
                  <ElementWords
                    element={element}
                    operator={operators.get(element.type)}
                    words={words}
                    replace={replace.includes(id)}
                  />
                </li>
              )
            );
          })}
        </ol>
      </Section>
    </>
  );
}

interface ElementProps {
  element: DocElement;
  operator: Operator | undefined;
  words: string;
  replace: boolean;
}

function ElementWords({ element, operator, words, replace }: ElementProps) {
  return (
    <>
      <span className="op-icon" data-category={operator?.category}>
        <OperatorIcon icon={operator?.icon} category={operator?.category} />
      </span>
      <div className="template-elements__names">
        <h3>{displayName(element, operator)}</h3>
        <span className="muted small">{operator?.title ?? element.type}</span>
      </div>
      <div className="template-elements__words">
        <Markdown text={capitalised(words || operator?.summary || "")} />
        {replace && <span className="badge badge--accent">{replaceWords(element)}</span>}
      </div>
    </>
  );
}

mount(<TemplatePage />);
