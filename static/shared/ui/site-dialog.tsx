/** Asks for a site: the name is checked as it is typed, and what the server refuses is said. */
import { useState } from "react";
import { problemText } from "../api";
import { siteFault } from "../names";
import { Dialog } from "./dialog";
import { Text } from "./field";

export function SiteDialog({
  title,
  description,
  label = "Site",
  action,
  site,
  known,
  save,
  onClose,
}: {
  title: string;
  description: string;
  label?: string;
  /** the words on the button */
  action: string;
  site: string;
  /** what is offered while one types; names may come several times */
  known: readonly string[];
  save: (site: string) => Promise<void>;
  onClose: () => void;
}) {
  const [text, setText] = useState(site);
  const [refused, setRefused] = useState<string | null>(null);
  const wrong = siteFault(text) ?? refused;
  const submit = () => {
    if (wrong) return;
    save(text)
      .then(onClose)
      .catch((error: unknown) => setRefused(problemText(error)));
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      description={description}
      footer={
        <>
          <button className="button" onClick={onClose}>
            Cancel
          </button>
          <button className="button button--primary" disabled={!!wrong} onClick={submit}>
            {action}
          </button>
        </>
      }
    >
      <Text
        label={label}
        value={text}
        known={[...new Set(known)].filter(Boolean).sort()}
        fault={wrong}
        autoFocus
        onChange={(text) => {
          setText(text);
          setRefused(null);
        }}
        onEnter={submit}
      />
    </Dialog>
  );
}
