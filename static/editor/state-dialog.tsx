/** *Export with its state*: brings the pipeline to one boundary, says what that waits for, and gives the file. */
import { useEffect, useState } from "react";
import { post } from "../shared/api";
import { downloadFrom } from "../shared/download";
import type { StateReady } from "../shared/types";
import { Dialog, DialogAction } from "../shared/ui/dialog";
import { createOpenState } from "../shared/ui/open-state";
import { Problem } from "../shared/ui/parts";
import { current } from "./store";
import "./template-dialog.css";

const LOOK_EVERY_MS = 1000;

const asked = createOpenState();

export const askState = asked.open;

export function StateDialog() {
  return asked.useOpen() ? <Ask close={asked.close} /> : null;
}

function Ask({ close }: { close: () => void }) {
  const [name] = useState(() => current().metadata.name);
  const [begun, setBegun] = useState(false);
  const [state, setState] = useState<StateReady | null>(null);
  const [error, setError] = useState<unknown>(null);
  const path = `/pipelines/${encodeURIComponent(name)}/state`;
  const looks = begun && !state?.ready && error === null;
  useEffect(() => {
    if (!looks) return;
    let timer = 0;
    let over = false;
    const look = async () => {
      try {
        const found = await post<StateReady>(path);
        if (over) return;
        setState(found);
        if (!found.ready) timer = window.setTimeout(() => void look(), LOOK_EVERY_MS);
      } catch (problem) {
        if (!over) setError(problem);
      }
    };
    void look();
    return () => {
      over = true;
      window.clearTimeout(timer);
    };
  }, [looks, path]);
  return (
    <Dialog
      open
      onClose={close}
      size="m"
      title="Export with its state"
      description="Another Fogline continues with the file where this one stops. So the pipeline stops here first: the sources pause, and each other element reads its last rows and pauses, too. No row is lost, and none comes twice."
      footer={
        <>
          <button type="button" className="button" onClick={close}>
            Close
          </button>
          {state?.ready ? (
            <DialogAction title="Download" run={() => downloadFrom(`/api/v1${path}`, `${name}.state`)} />
          ) : (
            <DialogAction
              title={error === null ? "Stop and export" : "Try again"}
              busy={looks}
              run={() => {
                setError(null);
                setBegun(true);
              }}
            />
          )}
        </>
      }
    >
      <div className="stack">
        <ul className="carried-notes small">
          <li>
            The other Fogline needs the files that the pipeline reads, imported from the same original files
            in the same way.
          </li>
          <li>
            If the pipeline uses topics of yours, the other Fogline has to use the same topics of the same
            Kafka.
          </li>
          <li>Charts, dead letters and the rows of streams stay here.</li>
          <li>
            The elements stay paused. Resume them here, or undeploy the pipeline once it runs elsewhere.
          </li>
        </ul>
        <p role="status" aria-live="polite">
          {looks && (state ? `It waits for ${state.waits_for.join("; ")}.` : "It stops.")}
          {state?.ready && "All elements have stopped, and their states fit together. Download the file."}
        </p>
        {error !== null && <Problem error={error} />}
      </div>
    </Dialog>
  );
}
