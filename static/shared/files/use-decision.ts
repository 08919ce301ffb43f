/** What a person decides about a file, with what the server shows of it. */
import { useEffect, useMemo, useRef, useState } from "react";
import { useSettled } from "../settled";
import { useLoaded } from "../ui/parts";
import { previewOf } from "./files";
import { NO_CHANGES, readingOf, type Changes } from "./reading";
import { startOf } from "./start";
import type { Detection, FileDetail, Preview, Reading } from "./types";
import type { Options } from "./words";

export interface Decision {
  detection: Detection;
  changes: Changes;
  reading: Reading;
  /** as it was last shown: it stays while the file is read in another way */
  preview: Preview | null;
  /** those that can be chosen, as the server calls them */
  encodings: Options;
  busy: boolean;
  error: unknown;
  retry: () => void;
  change: (next: Changes) => void;
  undo: () => void;
  canUndo: boolean;
}

const PAUSE_MS = 250;

export function useDecision(file: FileDetail): Decision {
  const start = useMemo(() => startOf(file), [file]);
  const [past, setPast] = useState<Changes[]>([]);
  const [changes, setChanges] = useState<Changes>(start.changes);
  const fixed = JSON.stringify(changes.fixed);
  const found = useLoaded(`found ${file.id} ${fixed}`, (signal) =>
    changes.fixed === NO_CHANGES.fixed || fixed === "{}"
      ? Promise.resolve(null)
      : previewOf(file.id, { fixed: changes.fixed }, signal),
  );
  const detection = useLast(found.data === undefined ? null : (found.data?.detection ?? start.detection));
  const known = detection ?? start.detection;
  const reading = useMemo(() => readingOf(known, changes), [known, changes]);
  const asked = useSettled(JSON.stringify(reading), PAUSE_MS);
  const shown = useLoaded(`read ${file.id} ${asked}`, (signal) =>
    previewOf(file.id, { reading: JSON.parse(asked) as Reading }, signal),
  );
  const preview = useLast(shown.data?.preview ?? null);
  const encodings = useLast(shown.data?.encodings ?? null);
  return {
    detection: known,
    changes,
    reading,
    preview,
    encodings: Object.entries(encodings ?? {}),
    busy: found.data === undefined || shown.data === undefined,
    error: found.error ?? shown.error,
    retry: found.error ? found.reload : shown.reload,
    change: (next) => {
      setPast([...past, changes]);
      setChanges(next);
    },
    undo: () => {
      const before = past.at(-1);
      if (!before) return;
      setPast(past.slice(0, -1));
      setChanges(before);
    },
    canUndo: past.length > 0,
  };
}

/** The value, or the last one that was there. */
function useLast<T>(value: T | null): T | null {
  const last = useRef<T | null>(null);
  useEffect(() => {
    if (value !== null) last.current = value;
  }, [value]);
  return value ?? last.current;
}
