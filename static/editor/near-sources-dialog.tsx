import { useEffect, useState } from "react";
import { listed, plural } from "../shared/format";
import { useLive } from "../shared/live";
import { Dialog, DialogAction } from "../shared/ui/dialog";
import { createOpenState } from "../shared/ui/open-state";
import { post, problemText } from "../shared/api";
import type { Copies } from "../shared/types";
import { elementsOf } from "../shared/document";
import { commit, current, select, useEditor } from "./store";

/** In a text parameter it stands for the site: a topic "readings-{site}". */
const SITE_MARK = "{site}";

const asked = createOpenState();

/** Asks at which sites the selected elements get a copy. */
export function askSites(): void {
  if (useEditor.getState().selected.size > 0) asked.open();
}

const READY = { busy: false, refused: "" };
const CHANGED = "The draft has changed in the meantime. Copy again.";

export function NearSourcesDialog() {
  const open = asked.useOpen();
  const document = useEditor((state) => state.history.present);
  const name = useEditor((state) => state.name);
  const selected = useEditor((state) => state.selected);
  const nodes = useLive((state) => state.nodes);
  const [without, setWithout] = useState<ReadonlySet<string>>(new Set());
  const [state, setState] = useState<{ busy: boolean; refused: string }>(READY);
  useEffect(() => {
    setWithout(new Set());
    setState(READY);
  }, [open]);
  const ids = [...selected];
  const own = elementsOf(document).find((each) => selected.has(each.id) && each.site)?.site ?? null;
  const known = [...new Set([...nodes.map((node) => node.site), own ?? ""])].filter(Boolean).sort();
  const chosen = known.filter((site) => site === own || !without.has(site));
  const copy = () => {
    const before = current();
    setState({ busy: true, refused: "" });
    post<Copies>(`/pipelines/${encodeURIComponent(name)}/copies`, {
      document: before,
      elements: ids,
      sites: own === null ? chosen : [own, ...chosen],
    })
      .then((made) => {
        if (current() !== before) return setState({ busy: false, refused: CHANGED });
        commit(made.document);
        select(made.elements);
        asked.close();
      })
      .catch((error: unknown) => setState({ busy: false, refused: problemText(error) }));
  };
  const toggle = (site: string, on: boolean) => {
    setState(READY);
    setWithout((before) => new Set(on ? [...before].filter((each) => each !== site) : [...before, site]));
  };
  return (
    <Dialog
      open={open}
      onClose={asked.close}
      title={`Copy ${plural(ids.length, "element")} to each site`}
      description={
        <p>
          Each site gets a copy that runs on a node there, near its part of the sources. Elements that read
          from them read all copies, merged. If a parameter contains <code>{SITE_MARK}</code>, each copy uses
          the name of its own site.
        </p>
      }
      footer={
        <>
          <button className="button" onClick={asked.close}>
            Cancel
          </button>
          <DialogAction
            title="Copy"
            refused={state.refused || fewWords(known, chosen, own)}
            busy={state.busy}
            run={copy}
          />
        </>
      }
    >
      <div className="stack stack--tight" role="group" aria-label="Sites">
        {known.map((site) => (
          <label className="check" key={site}>
            <input
              type="checkbox"
              checked={chosen.includes(site)}
              disabled={site === own}
              onChange={(event) => toggle(site, event.target.checked)}
            />
            {site}
            <span className="muted">
              {site === own
                ? ids.length === 1
                  ? "it stands there"
                  : "they stand there"
                : listed(nodes.filter((node) => node.site === site).map((node) => node.name))}
            </span>
          </label>
        ))}
      </div>
    </Dialog>
  );
}

function fewWords(known: string[], chosen: string[], own: string | null): string | null {
  if (known.length < 2) return "Fewer than two sites are known: set the sites of your nodes on their pages.";
  if (chosen.length < 2) return own === null ? "Choose two sites or more." : "Choose another site.";
  return null;
}
