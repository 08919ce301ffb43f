/** Asks a node what a system has, one question after the other. */
import { useCallback, useEffect, useRef, useState } from "react";
import { problemText, request } from "../../shared/api";
import type { ConnectionTested } from "../../shared/types";
import { branchOf, WHOLE, type Branch, type Branches } from "./found";

interface Browsed {
  /** what was looked into */
  branches: Branches;
  /** what the last search has found; null: there is none */
  found: Branch | null;
  look: (path: string, within: readonly string[]) => void;
  search: (find: string) => void;
  endSearch: () => void;
  /** forgets all, and looks at the whole again */
  again: () => void;
}

const ASKING: Branch = { state: "asking", words: "", things: [] };

export function useBrowse(connection: string, node: string): Browsed {
  const [branches, setBranches] = useState<Branches>({});
  const [found, setFound] = useState<Branch | null>(null);
  const [turn, setTurn] = useState(0);
  // a node tries two connections at once, so questions wait for each other here
  const last = useRef<Promise<unknown>>(Promise.resolve());
  const ended = useRef(new AbortController());
  // the number of the newest search: nobody waits for an earlier one, so it is not asked, and its answer is passed over
  const newest = useRef(0);

  const ask = useCallback(
    (
      body: { path?: string; find?: string },
      within: readonly string[],
      take: (found: Branch) => void,
      isWanted: () => boolean = () => true,
    ) => {
      const { signal } = ended.current;
      const tell = (branch: Branch) => {
        if (!signal.aborted && isWanted()) take(branch);
      };
      tell(ASKING);
      const run = async () => {
        if (signal.aborted || !isWanted()) return;
        const path = `/connections/${encodeURIComponent(connection)}/test`;
        const answer = await request<ConnectionTested>("POST", path, { body: { node, ...body }, signal });
        tell(branchOf(answer, within));
      };
      last.current = last.current
        .then(run)
        .catch((error: unknown) => tell({ state: "refused", words: problemText(error), things: [] }));
    },
    [connection, node],
  );

  const look = useCallback(
    (path: string, within: readonly string[]) =>
      ask({ path }, within, (branch) => setBranches((old) => ({ ...old, [path]: branch }))),
    [ask],
  );

  useEffect(() => {
    ended.current = new AbortController();
    const { current } = ended;
    last.current = Promise.resolve();
    setBranches({});
    setFound(null);
    if (node) look(WHOLE, []);
    return () => current.abort();
  }, [look, node, turn]);

  return {
    branches,
    found,
    look,
    search: (find) => {
      const number = ++newest.current;
      ask({ find }, [], setFound, () => number === newest.current);
    },
    endSearch: () => {
      newest.current += 1;
      setFound(null);
    },
    again: () => setTurn((old) => old + 1),
  };
}
