/** Latencies and rates that a person sets as matrices in files. They replace the measured ones. */
import { useId, useState } from "react";
import { Upload } from "lucide-react";
import { del, problemText, put } from "../shared/api";
import { roleReason } from "../shared/page";
import type { SiteMap } from "../shared/types";
import { Dialog } from "../shared/ui/dialog";
import { toast } from "../shared/ui/toast";

type Given = SiteMap["given"];

/** The matrix as in a file: the sites, then a row for each. */
export const matrixText = ({ sites, rows }: Given): string =>
  sites.length ? [sites.join(","), ...rows.map((row) => row.join(","))].join("\n") : "";

const KINDS = {
  latencies: {
    path: "/map/latencies",
    hint: "Set the latencies between sites instead of the measured ones",
    values: "its latencies to all sites, one way, in ms",
    example: "Hall,Cloud\n0,12\n12,0",
  },
  rates: {
    path: "/map/rates",
    hint: "Set the rates between sites instead of the measured ones",
    values: "its rates to all sites, in Mbit/s; 0 keeps the measured rate",
    example: "Hall,Cloud\n0,3.5\n20,0",
  },
};
type Kind = keyof typeof KINDS;

interface Props {
  kind: Kind;
  given: Given;
  onChanged: () => void;
}

export function GivenMatrix(props: Props) {
  const { kind, given } = props;
  const [open, setOpen] = useState(false);
  const locked = roleReason("operator");
  return (
    <>
      <button
        className="button"
        disabled={!!locked}
        title={locked ?? KINDS[kind].hint}
        onClick={() => setOpen(true)}
      >
        <Upload aria-hidden="true" />
        {given.sites.length ? `Change the ${kind}` : `Set ${kind}`}
      </button>
      {open && <MatrixDialog {...props} onClose={() => setOpen(false)} />}
    </>
  );
}

function MatrixDialog({ kind, given, onChanged, onClose }: Props & { onClose: () => void }) {
  const id = useId();
  const { path, values, example } = KINDS[kind];
  const [text, setText] = useState(matrixText(given));
  const [refused, setRefused] = useState<string | null>(null);
  const write = (text: string) => {
    setText(text);
    setRefused(null);
  };
  const ended = (work: Promise<unknown>, title: string) =>
    work
      .then(() => {
        toast({ tone: "done", title });
        onChanged();
        onClose();
      })
      .catch((error: unknown) => setRefused(problemText(error)));
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Set ${kind} between sites`}
      description={`Fogline uses them instead of the measured ones to decide where elements run. The first line names the sites. Then comes a line for each site, in the same order, with ${values}.`}
      footer={
        <>
          {given.sites.length > 0 && (
            <button
              className="button"
              onClick={() => void ended(del(path), `The measured ${kind} count again`)}
            >
              Remove {kind}
            </button>
          )}
          <button className="button" onClick={onClose}>
            Cancel
          </button>
          <button
            className="button button--primary"
            disabled={!text.trim()}
            onClick={() => void ended(put(path, { matrix: text }), `The new ${kind} are in use`)}
          >
            Save {kind}
          </button>
        </>
      }
    >
      <div className="stack">
        <div className="field">
          <label className="field__label" htmlFor={`${id}-file`}>
            From a file
          </label>
          <input
            className="input"
            id={`${id}-file`}
            type="file"
            accept=".csv,.txt,text/plain,text/csv"
            onChange={(event) => void event.target.files?.[0]?.text().then(write)}
          />
        </div>
        <div className="field">
          <label className="field__label" htmlFor={id}>
            Matrix
          </label>
          <textarea
            className="textarea mono"
            id={id}
            rows={6}
            value={text}
            spellCheck={false}
            placeholder={example}
            aria-invalid={!!refused}
            onChange={(event) => write(event.target.value)}
          />
          {refused && (
            <p className="field__error" role="alert">
              {refused}
            </p>
          )}
        </div>
      </div>
    </Dialog>
  );
}
