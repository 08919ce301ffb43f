import { useState } from "react";
import { create } from "zustand";
import { ago, bytes, listed } from "../format";
import { Dialog, DialogAction } from "../ui/dialog";
import type { MissingFile } from "../types";
import { FileChooser } from "./file-chooser";
import { startUpload } from "./uploads";
import { UploadList } from "./upload-list";
import { useFiles } from "./use-files";

/** The upload for each name of a file. */
export type Chosen = Record<string, string>;

const OWNER = "imported pipeline";

const usePending = create<{
  missing: MissingFile[];
  answer: (chosen: Chosen | null) => void;
}>(() => ({ missing: [], answer: () => undefined }));

/** Asks which uploads the names in an imported pipeline mean. Resolves to null if the user cancels. */
export function askFiles(missing: MissingFile[]): Promise<Chosen | null> {
  return new Promise((resolve) => {
    usePending.setState({
      missing,
      answer: (chosen) => {
        usePending.setState({ missing: [] });
        resolve(chosen);
      },
    });
  });
}

export function MissingFiles() {
  const { missing, answer } = usePending();
  return missing.length > 0 ? <Ask missing={missing} answer={answer} /> : null;
}

function Ask({ missing, answer }: { missing: MissingFile[]; answer: (chosen: Chosen | null) => void }) {
  const [chosen, setChosen] = useState<Chosen>({});
  const open = missing.filter(({ name }) => !chosen[name]);
  return (
    <Dialog
      open
      onClose={() => answer(null)}
      size="m"
      title="Which files does it read?"
      description="The pipeline names files that are not here, or that are here more than once. Choose an upload for each, or upload it. Nothing is imported before."
      footer={
        <>
          <button type="button" className="button" onClick={() => answer(null)}>
            Cancel
          </button>
          <DialogAction
            title="Import"
            refused={open.length > 0 ? `Choose a file for ${listed(open.map(({ name }) => name))}.` : null}
            run={() => answer(chosen)}
          />
        </>
      }
    >
      <div className="stack">
        {missing.map((each) => (
          <Row
            key={each.name}
            missing={each}
            value={chosen[each.name] ?? ""}
            choose={(reference) => setChosen((now) => ({ ...now, [each.name]: reference }))}
          />
        ))}
        <UploadList owner={OWNER} />
      </div>
    </Dialog>
  );
}

function Row({
  missing: { name, elements, choices },
  value,
  choose,
}: {
  missing: MissingFile;
  value: string;
  choose: (reference: string) => void;
}) {
  const { data: files = [] } = useFiles();
  // those with this name come first
  const offered = [...files].sort(
    (a, b) => Number(choices.includes(b.reference)) - Number(choices.includes(a.reference)),
  );
  return (
    <div className="field">
      <label className="field__label" htmlFor={`file ${name}`}>
        {name}
      </label>
      <div className="row">
        <select
          className="select"
          id={`file ${name}`}
          value={value}
          onChange={(event) => choose(event.target.value)}
        >
          <option value="" disabled>
            Choose a file
          </option>
          {offered.map((file) => (
            <option key={file.reference} value={file.reference}>
              {`${file.name}, ${bytes(file.size)}, ${ago(file.created_at)}`}
            </option>
          ))}
        </select>
        <FileChooser
          label={`Upload ${name}`}
          onFile={(file) => startUpload(file, (stored) => choose(stored.reference), OWNER)}
        />
      </div>
      <p className="field__help">
        {choices.length > 0 ? "It is here more than once." : "It is not here."}{" "}
        {`Used by ${listed(elements)}.`}
      </p>
    </div>
  );
}
