import { RotateCw, X } from "lucide-react";
import { useNow } from "../clock";
import { bytes, seconds } from "../format";
import { Bar } from "./bar";
import { useUploads, type Upload } from "./uploads";
import { leftMs } from "./words";
import "./files.css";

/** The uploads that run or have failed, of one owner or all. */
export function UploadList({ owner }: { owner?: string }) {
  const uploads = useUploads((state) => state.uploads).filter((each) => !owner || each.owner === owner);
  if (uploads.length === 0) return null;
  return (
    <ul className="uploads" aria-label="Uploads">
      {uploads.map((each) => (
        <li key={each.id}>{each.failed === null ? <Running {...each} /> : <Failed {...each} />}</li>
      ))}
    </ul>
  );
}

function Running({ name, size, sent, started_ms, cancel }: Upload) {
  const left = leftMs(sent, size, useNow() - started_ms);
  return (
    <div className="uploads__line">
      <span className="uploads__name ellipsis" title={name}>
        {name}
      </span>
      <button type="button" className="button button--quiet button--small" onClick={cancel}>
        <X aria-hidden="true" />
        Cancel upload
      </button>
      <Bar label={`Upload of ${name}`} done={sent} total={size} />
      <span className="field__help num">
        {sent < size
          ? `${bytes(sent)} of ${bytes(size)}${left === null ? "" : `, ${seconds(left)} left`}`
          : `${bytes(size)} sent. The server stores it.`}
      </span>
    </div>
  );
}

function Failed({ name, failed, retry, cancel }: Upload) {
  return (
    <div className="notice notice--error" role="alert">
      <div className="stack stack--tight">
        <span>
          {name} was not uploaded. {failed}
        </span>
        <span className="row">
          <button type="button" className="button button--small" onClick={retry}>
            <RotateCw aria-hidden="true" />
            Upload again
          </button>
          <button type="button" className="button button--small button--quiet" onClick={cancel}>
            Dismiss
          </button>
        </span>
      </div>
    </div>
  );
}
