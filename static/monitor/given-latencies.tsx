/** Latencies that a person gives, as a matrix in a file: they count instead of what is measured. */
import { useId, useState } from "react";
import { Upload } from "lucide-react";
import { del, problemText, put } from "../shared/api";
import { roleReason } from "../shared/page";
import type { SiteMap } from "../shared/types";
import { Dialog } from "../shared/ui/dialog";
import { toast } from "../shared/ui/toast";

type Given = SiteMap["given"];

/** As it stands in a file: the sites, then a row for each. */
export const matrixText = ({ sites, rows }: Given): string =>
  sites.length ? [sites.join(","), ...rows.map((row) => row.join(","))].join("\n") : "";

export function GivenLatencies({ given, onChanged }: { given: Given; onChanged: () => void }) {
  const [open, setOpen] = useState(false);
  const locked = roleReason("operator");
  return (
    <>
      <button
        className="button"
        disabled={!!locked}
        title={locked ?? "Say how long the ways between sites are, instead of what is measured"}
        onClick={() => setOpen(true)}
      >
        <Upload aria-hidden="true" />
        {given.sites.length ? "Change given latencies" : "Give latencies"}
      </button>
      {open && <MatrixDialog given={given} onChanged={onChanged} onClose={() => setOpen(false)} />}
    </>
  );
}

function MatrixDialog({
  given,
  onChanged,
  onClose,
}: {
  given: Given;
  onChanged: () => void;
  onClose: () => void;
}) {
  const id = useId();
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
      title="Give latencies between sites"
      description="They count instead of what the nodes measure, for all who decide where elements run. The first line names the sites; then, in the same order, a line for each with its latencies to all of them, in ms, one way."
      footer={
        <>
          {given.sites.length > 0 && (
            <button
              className="button"
              onClick={() => void ended(del("/map/latencies"), "What is measured counts again")}
            >
              Remove given latencies
            </button>
          )}
          <button className="button" onClick={onClose}>
            Cancel
          </button>
          <button
            className="button button--primary"
            disabled={!text.trim()}
            onClick={() =>
              void ended(put("/map/latencies", { matrix: text }), "The given latencies count now")
            }
          >
            Save latencies
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
            placeholder={"Hall,Cloud\n0,12\n12,0"}
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
