/** Asks a node what a system has, and keeps what it has answered. */
import { useCallback, useEffect, useRef, useState } from "react";
import { post } from "../../shared/api";
import type { ConnectionTested } from "../../shared/types";
import { WHOLE, type Branch, type Branches } from "./found";
import { Questions } from "./questions";

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

/** @param start where a look at the whole begins; empty: at the whole system */
export function useBrowse(connection: string, node: string, start: string): Browsed {
  const [branches, setBranches] = useState<Branches>({});
  const [found, setFound] = useState<Branch | null>(null);
  const [turn, setTurn] = useState(0);
  const questions = useRef<Questions>(null);

  const look = useCallback(
    (path: string, within: readonly string[]) =>
      questions.current?.look(path, within, (branch) => setBranches((old) => ({ ...old, [path]: branch }))),
    [],
  );

  useEffect(() => {
    const path = `/connections/${encodeURIComponent(connection)}/test`;
    const asked = new Questions((question, signal) =>
      post<ConnectionTested>(
        path,
        { node, ...question, ...(question.path === WHOLE && { path: start }) },
        signal,
      ),
    );
    questions.current = asked;
    setBranches({});
    setFound(null);
    if (node) look(WHOLE, []);
    return () => asked.end();
  }, [connection, look, node, start, turn]);

  return {
    branches,
    found,
    look,
    search: (find) => questions.current?.search(find, setFound),
    endSearch: () => {
      questions.current?.endSearch();
      setFound(null);
    },
    again: () => setTurn((old) => old + 1),
  };
}
