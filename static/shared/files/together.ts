/** Two panes that show the same lines scroll up and down together. */
import { useCallback, useRef, type RefObject, type UIEvent } from "react";

export interface Together {
  panes: RefObject<Set<HTMLElement>>;
  onScroll: (event: UIEvent<HTMLElement>) => void;
}

export function useTogether(): Together {
  const panes = useRef(new Set<HTMLElement>());
  const onScroll = useCallback(({ currentTarget }: UIEvent<HTMLElement>) => {
    for (const pane of panes.current)
      if (pane !== currentTarget && pane.scrollTop !== currentTarget.scrollTop)
        pane.scrollTop = currentTarget.scrollTop;
  }, []);
  return { panes, onScroll };
}

/** A ref that puts its element among the panes. */
export const pane = (panes: Together["panes"]) => (element: HTMLElement | null) => {
  if (!element) return;
  panes.current.add(element);
  return () => void panes.current.delete(element);
};
