/** A pipeline from a file with its state: it goes on where it stopped, or begins from the start. */
import { useState } from "react";
import { upload } from "../shared/api";
import { bytes, percent } from "../shared/format";
import { TITLE_MAX } from "../shared/names";
import type { Pipeline } from "../shared/types";
import { Choices } from "../shared/ui/choices";
import { Dialog, DialogAction } from "../shared/ui/dialog";
import { Text } from "../shared/ui/field";
import { Problem } from "../shared/ui/parts";
import { toast } from "../shared/ui/toast";

type How = "with" | "without";

export function ImportState({
  file,
  onClose,
  onDone,
  without,
}: {
  file: File;
  onClose: () => void;
  onDone: () => void;
  /** Imports only the document, which is this text. */
  without: (text: string) => Promise<void>;
}) {
  const [how, setHow] = useState<How>("with");
  const [title, setTitle] = useState("");
  const [sent, setSent] = useState<number | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [end] = useState(() => new AbortController());
  const close = () => {
    end.abort();
    onClose();
  };
  const run = async () => {
    setError(null);
    setSent(0);
    try {
      if (how === "without") return await without(await documentIn(file));
      const form = new FormData();
      form.append("title", title.trim());
      form.append("file", file);
      const made = await upload<Pipeline>(
        "/states",
        form,
        (done, total) => setSent(done / total),
        end.signal,
      );
      onDone();
      onClose();
      toast({
        tone: "done",
        title: `Imported ${made.title} with its state`,
        text: "Deploy it unchanged, and it continues where it stopped.",
        actions: [
          {
            title: "Open it",
            run: () => window.location.assign(`/pipelines/${encodeURIComponent(made.name)}`),
          },
        ],
      });
    } catch (problem) {
      setError(problem);
    }
    setSent(null);
  };
  return (
    <Dialog
      open
      onClose={close}
      size="m"
      title={`Import ${file.name}`}
      description={`A pipeline with its state, ${bytes(file.size)}.`}
      footer={
        <>
          <button type="button" className="button" onClick={close}>
            Cancel
          </button>
          <DialogAction title="Import" busy={sent !== null} run={() => void run()} />
        </>
      }
    >
      <div className="stack">
        <Choices<How>
          legend="How does it begin here?"
          value={how}
          onChange={setHow}
          choices={[
            {
              value: "with",
              title: "With its state",
              note: "Its first deployment continues where it stopped. The files and topics that it reads must be the same here.",
            },
            {
              value: "without",
              title: "Without its state",
              note: "Only what was drawn comes in. It begins from the start.",
            },
          ]}
        />
        {how === "with" && (
          <Text
            label="Another name, if its own is taken here"
            value={title}
            maxLength={TITLE_MAX}
            onChange={setTitle}
          />
        )}
        <p role="status" aria-live="polite">
          {sent !== null && how === "with" && `${percent(sent)} sent`}
        </p>
        {error !== null && <Problem error={error} />}
      </div>
    </Dialog>
  );
}

const HEADER_BYTES_MAX = 16 << 20;

/** The document in the first line. Throws if there is none. */
async function documentIn(file: File): Promise<string> {
  const [line = ""] = (await file.slice(0, HEADER_BYTES_MAX).text()).split("\n", 1);
  try {
    const header = JSON.parse(line) as { document?: unknown };
    if (typeof header.document === "string") return header.document;
  } catch {
    // said below
  }
  throw new Error(`${file.name} is no pipeline that was exported with its state.`);
}
