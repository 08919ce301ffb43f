import { useRef } from "react";
import { useNow } from "../clock";
import { bytes, seconds } from "../format";
import { Bar } from "./bar";
import type { StoredFile } from "./types";
import { leftMs, rows } from "./words";

/** How far the import of a file is, and how long it still takes. */
export function Progress({ file }: { file: StoredFile }) {
  const { bytes_done = 0, bytes_total = file.size, rows: read = 0 } = file.progress ?? {};
  const now = useNow();
  // the pace is that since this was first drawn: when the import began is not known here
  const first = useRef<{ at: number; done: number } | null>(null);
  first.current ??= { at: now, done: bytes_done };
  const { at, done } = first.current;
  const left = leftMs(bytes_done - done, bytes_total - done, now - at);
  return (
    <div className="stack stack--tight">
      <Bar label={`Import of ${file.name}`} done={bytes_done} total={bytes_total} />
      <span className="num muted" role="status">
        {rows(read)}, {bytes(bytes_done)} of {bytes(bytes_total)}
        {left !== null && `, ${seconds(left)} left`}
      </span>
    </div>
  );
}
