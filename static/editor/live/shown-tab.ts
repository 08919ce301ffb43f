/** Which tab of an element is shown beside the canvas. A mark on its card can open one. */
import { create } from "zustand";

interface Shown {
  element: string;
  tab: string;
}

export const useShownTab = create<{ shown: Shown | null }>(() => ({ shown: null }));

export function showTab(element: string, tab: string): void {
  useShownTab.setState({ shown: { element, tab } });
}

/** The tab to show of `element`: the one that was chosen for it, if it has that, else its first. */
export function tabOf(shown: Shown | null, element: string, tabs: readonly { id: string }[]): string {
  const chosen = shown?.element === element ? tabs.find(({ id }) => id === shown.tab) : undefined;
  return (chosen ?? tabs[0])?.id ?? "";
}
