import { useEffect, useState } from "react";
import { create } from "zustand";
import { listed, plural } from "../shared/format";
import { useLive } from "../shared/live";
import { Dialog, DialogAction } from "../shared/ui/dialog";
import { SITE_MARK, siteOf, spread, spreadRefusal } from "./near-sources";
import { commit, current, select, useEditor } from "./store";

const useAsked = create<{ open: boolean }>(() => ({ open: false }));

/** Asks at which sites the selected elements shall have a copy. */
export function askSites(): void {
  if (useEditor.getState().selected.size > 0) useAsked.setState({ open: true });
}

const close = () => useAsked.setState({ open: false });

export function NearSourcesDialog() {
  const open = useAsked((state) => state.open);
  const document = useEditor((state) => state.history.present);
  const operators = useEditor((state) => state.operators);
  const selected = useEditor((state) => state.selected);
  const nodes = useLive((state) => state.nodes);
  const [without, setWithout] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => setWithout(new Set()), [open]);
  const ids = [...selected];
  const own = siteOf(document, ids);
  const known = [...new Set([...nodes.map((node) => node.site), own ?? ""])].filter(Boolean).sort();
  const chosen = known.filter((site) => site === own || !without.has(site));
  const copy = () => {
    const made = spread(current(), operators, ids, chosen);
    commit(made.document);
    select(made.ids);
    close();
  };
  const toggle = (site: string, on: boolean) =>
    setWithout((before) => new Set(on ? [...before].filter((each) => each !== site) : [...before, site]));
  return (
    <Dialog
      open={open}
      onClose={close}
      title={`Copy ${plural(ids.length, "element")} to each site`}
      description={
        <p>
          Each site gets a copy that runs on a node there, near its part of the sources. Whoever reads them
          reads all of them, merged. Where a parameter says <code>{SITE_MARK}</code>, each copy says its own
          site.
        </p>
      }
      footer={
        <>
          <button className="button" onClick={close}>
            Cancel
          </button>
          <DialogAction
            title="Copy"
            refused={spreadRefusal(document, operators, ids) ?? fewWords(known, chosen, own)}
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
  if (known.length < 2) return "Fewer than two sites are known: a node's page says where it stands.";
  if (chosen.length < 2) return own === null ? "Choose two sites or more." : "Choose another site.";
  return null;
}
