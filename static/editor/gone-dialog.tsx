import { useState } from "react";
import { createPipeline } from "../shared/actions";
import { problemText } from "../shared/api";
import { pipelineTitle } from "../shared/document";
import { titleFault } from "../shared/names";
import { Dialog, DialogAction } from "../shared/ui/dialog";
import { Text } from "../shared/ui/field";
import { autosave } from "./autosave";
import { dropAllCopies } from "../shared/local-copies";
import { current, useEditor } from "./store";
import { dropHistory, renameHistory } from "./undo-copies";

/** Somebody deleted the pipeline: the draft that is open here can be kept as a new one. */
export function GoneDialog() {
  const deleted = useEditor((state) => state.save.state === "deleted");
  return deleted ? <Gone /> : null;
}

function Gone() {
  const before = useEditor((state) => state.name);
  const was = useEditor((state) => pipelineTitle(state.history.present));
  const [title, setTitle] = useState(was);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const wrong = titleFault(title);
  const leave = (to: string) => {
    autosave.base = null; // there is nothing left to save here
    window.location.assign(to);
  };
  const keep = async () => {
    setBusy(true);
    setError("");
    try {
      const { name } = await createPipeline(title.trim(), current());
      dropAllCopies(before);
      if (name !== before) renameHistory(before, name);
      leave(`/pipelines/${encodeURIComponent(name)}`);
    } catch (problem) {
      setError(problemText(problem));
      setBusy(false);
    }
  };
  const discard = () => {
    dropAllCopies(before);
    dropHistory(before);
    leave("/pipelines/");
  };
  return (
    <Dialog
      open
      onClose={() => undefined}
      mustChoose
      title={`${was} was deleted`}
      description="Somebody deleted this pipeline while you had it open. Your draft is still here, with all your changes."
      footer={
        <>
          <button type="button" className="button" onClick={discard}>
            Discard my draft
          </button>
          <DialogAction
            title="Keep it as a new pipeline"
            refused={wrong}
            busy={busy}
            run={() => void keep()}
          />
        </>
      }
    >
      <Text label="Name" value={title} fault={wrong || error} alert autoFocus onChange={setTitle} />
    </Dialog>
  );
}
