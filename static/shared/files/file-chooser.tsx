import { useRef } from "react";
import { Upload } from "lucide-react";

interface Props {
  /** what the file is for */
  label: string;
  /** for each of them */
  onFile: (file: File) => void;
  /** endings of names, such as .csv; all where none is said */
  accept?: string;
  disabled?: boolean;
  title?: string;
  multiple?: boolean;
  primary?: boolean | undefined;
}

/** The button that uploads files of this machine. */
export function FileChooser({ label, onFile, accept, disabled, title, multiple, primary }: Props) {
  const chooser = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        type="button"
        className={`button${primary ? " button--primary" : ""}`}
        disabled={disabled}
        title={title}
        onClick={() => chooser.current?.click()}
      >
        <Upload aria-hidden="true" />
        Upload
      </button>
      <input
        ref={chooser}
        type="file"
        hidden
        multiple={multiple}
        aria-label={label}
        accept={accept}
        onChange={(event) => {
          for (const file of event.target.files ?? []) onFile(file);
          event.target.value = "";
        }}
      />
    </>
  );
}
