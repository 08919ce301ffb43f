import { create } from "zustand";
import type { DeployChange } from "../shared/types";
import { Dialog, DialogAction } from "../shared/ui/dialog";
import { CHANGE_WORDS, deployRefusal, grouped, untouched } from "./deploy-changes";
import { displayName, findElement } from "./document";
import { select, setMode, useEditor } from "./store";

interface Asked {
  changes: DeployChange[] | null;
  answer: (yes: boolean) => void;
}

const NOTHING: Asked = { changes: null, answer: () => undefined };
const useAsked = create<Asked>(() => NOTHING);

/** Shows what will happen to what runs; resolves to whether the user agreed. */
export function confirmChanges(changes: DeployChange[]): Promise<boolean> {
  return new Promise((resolve) =>
    useAsked.setState({
      changes,
      answer: (yes) => {
        useAsked.setState(NOTHING);
        resolve(yes);
      },
    }),
  );
}

export function DeployPreview() {
  const { changes, answer } = useAsked();
  const name = useEditor((state) => state.name);
  if (!changes) return null;
  const refused = deployRefusal(changes);
  return (
    <Dialog
      open
      size="m"
      onClose={() => answer(false)}
      title={`Deploy changes of ${name}?`}
      description="It runs. This is what happens to each element that differs from what is deployed."
      footer={
        <>
          <button type="button" className="button" onClick={() => answer(false)}>
            Cancel
          </button>
          <DialogAction title="Deploy changes" refused={refused} run={() => answer(true)} />
        </>
      }
    >
      <div className="stack">
        {grouped(changes).map(({ change, elements }) => (
          <section
            key={change}
            className={`change change--${change}`}
            aria-label={CHANGE_WORDS[change].title}
          >
            <h3 className="section-title">{CHANGE_WORDS[change].title}</h3>
            <ul className="plain-list">
              {elements.map((each) => (
                <ChangeLine key={each.element} each={each} onShow={() => answer(false)} />
              ))}
            </ul>
            {CHANGE_WORDS[change].text && <p className="field__help">{CHANGE_WORDS[change].text}</p>}
          </section>
        ))}
        {untouched(changes) && <p className="muted small">{untouched(changes)}</p>}
      </div>
    </Dialog>
  );
}

function ChangeLine({ each, onShow }: { each: DeployChange; onShow: () => void }) {
  const element = useEditor((state) => findElement(state.history.present, each.element));
  const operator = useEditor((state) => state.operators.get(element?.type ?? ""));
  const show = () => {
    onShow();
    setMode("edit");
    select([each.element]);
    useEditor.setState({ focusPath: each.path });
  };
  return (
    <li>
      {element ? (
        <button type="button" className="link" onClick={show}>
          {displayName(element, operator)}
        </button>
      ) : (
        <b>{each.element}</b>
      )}
      {each.reason && <span className="change__reason">{each.reason}</span>}
    </li>
  );
}
