import { useState } from "react";
import { createPipeline } from "../shared/actions";
import { pipelineTitle } from "../shared/document";
import { copiesWithout, dropAllCopies, type LocalCopy } from "../shared/local-copies";
import { mayAct } from "../shared/page";
import { Ago } from "../shared/ui/parts";
import { toastError } from "../shared/ui/toast";

/** Changes that this browser keeps of pipelines that somebody deleted meanwhile. */
export function LeftDrafts({ there }: { there: ReadonlySet<string> }) {
  const [gone, setGone] = useState<readonly string[]>([]);
  if (!mayAct("editor")) return null;
  const left = [...copiesWithout(there)].filter(([name]) => !gone.includes(name));
  if (left.length === 0) return null;
  const discard = (name: string) => {
    dropAllCopies(name);
    setGone([...gone, name]);
  };
  const keep = async (name: string, { document }: LocalCopy) => {
    try {
      const made = await createPipeline(pipelineTitle(document), document);
      dropAllCopies(name);
      window.location.assign(`/pipelines/${encodeURIComponent(made.name)}`);
    } catch (error) {
      toastError("The draft was not kept", error);
    }
  };
  return (
    <section className="notice notice--warning" aria-label="Drafts of deleted pipelines">
      <div className="stack stack--tight">
        <span>Somebody deleted these pipelines while you changed them. This browser has your drafts.</span>
        {left.map(([name, copy]) => (
          <div key={name} className="row row--wrap">
            <b>{pipelineTitle(copy.document)}</b>
            <span className="muted small">
              changed <Ago at={new Date(copy.at).toISOString()} />
            </span>
            <button type="button" className="button button--small" onClick={() => void keep(name, copy)}>
              Keep it as a new pipeline
            </button>
            <button type="button" className="button button--small" onClick={() => discard(name)}>
              Discard it
            </button>
          </div>
        ))}
      </div>
    </section>
  );
}
