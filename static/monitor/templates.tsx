/** The gallery: what one can start from, each with a picture of its pipeline. */
import { LayoutTemplate } from "lucide-react";
import { templatePage } from "../shared/address";
import { mount } from "../shared/mount";
import type { Operator, Template } from "../shared/types";
import { Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { Frame } from "../shared/ui/frame";
import { drawnOf } from "../shared/pipeline-picture";
import { PipelinePicture } from "../shared/ui/pipeline-picture";
import { withOperators } from "./template-data";
import { DeployButton, UseProblem, useUse } from "./template-actions";
import { Facts } from "./template-facts";
import "./monitor.css";
import "./templates.css";

function TemplatesPage() {
  const { data, error, reload } = useLoaded("templates", (signal) =>
    withOperators<Template[]>("/templates", signal),
  );
  return (
    <Frame title="Templates">
      <p className="gallery__words">
        Start from one of these pipelines. Those that come with Fogline run as they are: deploy one to see it
        work, or make it yours and change what you like. Save a pipeline of your own as a template in its menu
        in the editor.
      </p>
      {!data && (error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={4} height={120} />)}
      {data?.found.length === 0 && (
        <div className="card empty">
          <LayoutTemplate aria-hidden="true" />
          <h2>This installation has no templates</h2>
          <p>You can still draw a pipeline from an empty canvas.</p>
          <a className="button" href="/pipelines/">
            All pipelines
          </a>
        </div>
      )}
      {data && data.found.length > 0 && (
        <ul className="gallery">
          {data.found.map((template) => (
            <li key={template.name}>
              <Card template={template} operators={data.operators} />
            </li>
          ))}
        </ul>
      )}
    </Frame>
  );
}

function Card({ template, operators }: { template: Template; operators: ReadonlyMap<string, Operator> }) {
  const { name, title, description, document } = template;
  const use = useUse(template);
  return (
    <article className="card gallery__card">
      <div className="gallery__picture">
        <PipelinePicture title={title} elements={drawnOf(document, operators)} />
      </div>
      <div className="gallery__text">
        <h2>
          <a className="gallery__link" href={templatePage(name)}>
            {title}
          </a>
        </h2>
        <p>{description}</p>
        <Facts template={template} />
        <UseProblem {...use} />
        <div className="gallery__actions">
          <DeployButton {...use} of={title} />
        </div>
      </div>
    </article>
  );
}

mount(<TemplatesPage />);
