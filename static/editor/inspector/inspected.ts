/** What the inspector shows of an element. The element that is selected next shows the same. */
import { create } from "zustand";
import type { Rows } from "../preview/path";

interface Inspected {
  tab: string;
  /** on which rows a preview runs; only the element to which rows are pinned shows those */
  rows: Exclude<Rows, "pinned">;
  /** on which node a preview runs; null: any */
  node: string | null;
}

export const PARAMETERS = "parameters";

export const useInspected = create<Inspected>(() => ({ tab: PARAMETERS, rows: "source", node: null }));

export const openTab = (tab: string): void => useInspected.setState({ tab });

/** Pure: the rows to show. Only a pipeline that runs has newest rows. */
export function rowsOf(kept: Inspected["rows"], pinned: boolean, runs: boolean): Rows {
  if (pinned) return "pinned";
  return kept === "running" && !runs ? "source" : kept;
}
