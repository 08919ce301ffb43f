import { useMemo, useState } from "react";
import { createPipeline } from "../shared/actions";
import { problemText } from "../shared/api";
import { NAME_MAX } from "../shared/names";
import type { PipelineDocument } from "../shared/types";
import { Dialog } from "../shared/ui/dialog";
import { toast } from "../shared/ui/toast";
import { autosave } from "./autosave";
import { elementsOf } from "./document";
import { mergeDocuments, stable } from "./merge";
import { adopt, current, useEditor } from "./store";

/** Someone else saved this draft meanwhile: choose, and lose nothing. */
export function ConflictDialog() {
  const save = useEditor((state) => state.save);
  if (save.state !== "conflict") return null;
  return <Choice theirs={save.theirs} revision={save.revision} />;
}

function Choice({ theirs, revision }: { theirs: PipelineDocument; revision: number }) {
  const yours = useEditor((state) => state.history.present);
  const name = useEditor((state) => state.name);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const merge = useMemo(() => mergeDocuments(autosave.base ?? yours, yours, theirs), [yours, theirs]);
  const clean = merge.conflicts.length === 0;
  const finish = (document: PipelineDocument) => {
    if (stable(document) !== stable(current())) adopt(document);
    autosave.resolve(theirs, revision);
  };
  /** The side that is not taken becomes a pipeline of its own first. */
  const keepAside = async (aside: PipelineDocument, word: string, then: () => void) => {
    setBusy(true);
    setError("");
    try {
      const suffix = `-${word}-${Date.now().toString(36).slice(-4)}`;
      const copy = name.slice(0, NAME_MAX - suffix.length).replace(/-+$/, "") + suffix;
      await createPipeline(copy, aside);
      toast({ tone: "done", title: `The other version is kept as ${copy}` });
      then();
    } catch (problem) {
      setError(`The copy could not be made, so nothing was changed. ${problemText(problem)}`);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      open
      onClose={() => undefined}
      size="m"
      mustChoose
      title="Someone else changed this draft"
      description={
        <>
          Since you opened it, another editor saved {name}. Both versions are kept, whatever you choose.
          <Difference yours={yours} theirs={theirs} />
          {!clean && <p>Both changed: {merge.conflicts.join(", ")}.</p>}
          {error && <p className="field__error">{error}</p>}
        </>
      }
      footer={
        <>
          <button
            className="button"
            disabled={busy}
            onClick={() => void keepAside(yours, "mine", () => finish(theirs))}
          >
            Use theirs, keep mine as a copy
          </button>
          <button
            className={`button${clean ? "" : " button--primary"}`}
            disabled={busy}
            onClick={() => void keepAside(theirs, "theirs", () => finish(yours))}
          >
            Use mine, keep theirs as a copy
          </button>
          {clean && (
            <button
              className="button button--primary"
              disabled={busy}
              autoFocus
              onClick={() => finish(merge.document)}
            >
              Merge both
            </button>
          )}
        </>
      }
    />
  );
}

function Difference({ yours, theirs }: { yours: PipelineDocument; theirs: PipelineDocument }) {
  const mine = new Map(elementsOf(yours).map((element) => [element.id, stable(element)]));
  const other = new Map(elementsOf(theirs).map((element) => [element.id, stable(element)]));
  const onlyMine = [...mine.keys()].filter((id) => !other.has(id));
  const onlyTheirs = [...other.keys()].filter((id) => !mine.has(id));
  const differ = [...mine.keys()].filter((id) => other.has(id) && other.get(id) !== mine.get(id));
  const lines: [string, string[]][] = [
    ["Only in yours", onlyMine],
    ["Only in theirs", onlyTheirs],
    ["Different", differ],
  ];
  return (
    <dl className="difference">
      {lines.map(([title, ids]) => (
        <div key={title}>
          <dt>{title}</dt>
          <dd>{ids.join(", ") || "nothing"}</dd>
        </div>
      ))}
    </dl>
  );
}
