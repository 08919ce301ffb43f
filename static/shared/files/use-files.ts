import { useEffect, useRef, useState } from "react";
import { create } from "zustand";
import { useLoaded } from "../ui/parts";
import { listFiles } from "./files";
import type { StoredFile } from "./types";
import { isBusy } from "./words";

const BUSY_MS = 1000;
const CALM_MS = 10_000;
const NONE: StoredFile[] = [];

const useTurn = create<{ turn: number }>(() => ({ turn: 0 }));

/** Something was done with a file here: all that shows files asks the server again. */
export const filesChanged = (): void => useTurn.setState(({ turn }) => ({ turn: turn + 1 }));

/** The files as the server has them, read again sooner while something is under way; none if not `wanted`. */
export function useFiles(wanted = true) {
  const [every, setEvery] = useState(CALM_MS);
  const { turn } = useTurn();
  const loaded = useLoaded<StoredFile[]>(
    wanted ? "files" : "no files",
    (signal) => (wanted ? listFiles(signal) : Promise.resolve(NONE)),
    wanted ? every : undefined,
  );
  const { data, reload } = loaded;
  useEffect(() => setEvery(data?.some(isBusy) ? BUSY_MS : CALM_MS), [data]);
  const seen = useRef(turn);
  useEffect(() => {
    if (seen.current !== turn) reload();
    seen.current = turn;
  }, [turn, reload]);
  return loaded;
}
