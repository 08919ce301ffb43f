import { useEffect, useState } from "react";
import { useLoaded } from "../ui/parts";
import { listFiles } from "./files";
import type { StoredFile } from "./types";
import { isBusy } from "./words";

const BUSY_MS = 1000;
const CALM_MS = 10_000;
const NONE: StoredFile[] = [];

/** The files as the server has them, read again sooner while something is under way; none if not `wanted`. */
export function useFiles(wanted = true) {
  const [every, setEvery] = useState(CALM_MS);
  const loaded = useLoaded<StoredFile[]>(
    wanted ? "files" : "no files",
    (signal) => (wanted ? listFiles(signal) : Promise.resolve(NONE)),
    wanted ? every : undefined,
  );
  const { data } = loaded;
  useEffect(() => setEvery(data?.some(isBusy) ? BUSY_MS : CALM_MS), [data]);
  return loaded;
}
