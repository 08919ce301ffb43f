import { create } from "zustand";

/** What the command palette can run, besides jumping. A view registers its own while it is shown. */
export interface Command {
  id: string;
  title: string;
  keys?: string;
  /** other words that somebody may look for it by */
  keywords?: string[];
  disabled?: string | null;
  run: () => void;
}

export const useCommands = create<Record<string, Command[]>>(() => ({}));

export function registerCommands(owner: string, commands: Command[]): () => void {
  useCommands.setState({ [owner]: commands });
  return () => useCommands.setState({ [owner]: [] });
}
