import { useEffect, useRef, useState } from "react";
import { Upload } from "lucide-react";
import { get, problemText, request } from "../../shared/api";
import { bytes } from "../../shared/format";
import type { UploadedFile } from "../../shared/types";
import { useLoaded } from "../../shared/ui/parts";
import { toast, toastError } from "../../shared/ui/toast";

interface Props {
  id: string;
  value: string;
  readOnly: boolean;
  invalid: boolean;
  describedBy: string | undefined;
  onChange: (reference: string) => void;
}

/** A reference to a data file: chosen from what is there, or uploaded now. */
export function FileField({ id, value, readOnly, invalid, describedBy, onChange }: Props) {
  const chooser = useRef<HTMLInputElement>(null);
  const [busy, setBusy] = useState("");
  const [error, setError] = useState("");
  const { data: files = [], reload } = useLoaded("files", (signal) => get<UploadedFile[]>("/files", signal));
  const known = files.find((file) => file.reference === value);
  // an upload takes its time: what it is put into is the form as it is then, not as it was when it began
  const put = useRef<Props["onChange"] | null>(onChange);
  useEffect(() => {
    put.current = onChange;
    return () => {
      put.current = null;
    };
  });
  const upload = async (file: File) => {
    setBusy(`Uploading ${file.name}, ${bytes(file.size)}…`);
    setError("");
    const form = new FormData();
    form.append("file", file);
    try {
      const uploaded = await request<UploadedFile>("POST", "/files", { form });
      if (put.current) {
        put.current(uploaded.reference);
        reload();
      } else
        toast({
          tone: "done",
          title: `${file.name} is uploaded`,
          text: "Choose it in the element's file field, which was closed meanwhile.",
        });
    } catch (problem) {
      if (put.current) setError(`${file.name} was not uploaded: ${problemText(problem)}`);
      else toastError(`${file.name} was not uploaded`, problem);
    } finally {
      setBusy("");
    }
  };
  return (
    <>
      <div className="row">
        <input
          className="input mono"
          id={id}
          list={`${id}-files`}
          value={value}
          readOnly={readOnly}
          aria-invalid={invalid}
          aria-describedby={describedBy}
          placeholder="Choose or upload a file"
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => onChange(event.target.value)}
        />
        <button
          type="button"
          className="button"
          disabled={readOnly || busy !== ""}
          onClick={() => chooser.current?.click()}
        >
          <Upload aria-hidden="true" />
          Upload
        </button>
      </div>
      <input
        ref={chooser}
        type="file"
        hidden
        aria-label="Data file"
        accept=".csv,.tsv,.txt,.gz,.json,.jsonl"
        onChange={(event) => {
          const file = event.target.files?.[0];
          if (file) void upload(file);
          event.target.value = "";
        }}
      />
      <datalist id={`${id}-files`}>
        {files.map((file) => (
          <option key={file.reference} value={file.reference}>
            {file.name}
          </option>
        ))}
      </datalist>
      <p className="field__help" role="status">
        {busy || (known ? `${known.name}, ${bytes(known.size)}` : "")}
      </p>
      {error && <p className="field__error">{error}</p>}
    </>
  );
}
