/** What the user wants of each pipeline of an imported file. Pure. */
import { titleFault } from "../shared/names";
import type { ReadItem } from "../shared/types";

/** `ask`: it is here already, and the user has not decided. */
export type How = "ask" | "new" | "rename" | "replace" | "skip";

export interface Wish {
  how: How;
  /** of the new pipeline, if it is renamed */
  title: string;
}

const cannot = ({ refused, missing }: ReadItem): boolean => refused !== null || missing.length > 0;

/** What is offered first. The same draft needs no decision. */
export function asked(item: ReadItem): Wish {
  const how = cannot(item) ? "skip" : !item.there ? "new" : item.there.same ? "skip" : "ask";
  return { how, title: item.free_title };
}

export interface Wanted {
  at: number;
  title: string;
  replaces: number | null;
}

/** What the server is asked to import. */
export function toImport(items: readonly ReadItem[], wishes: readonly Wish[]): Wanted[] {
  return items.flatMap((item, index) => {
    const { how, title } = wishes[index]!;
    if (how === "skip" || how === "ask" || cannot(item)) return [];
    const replaces = how === "replace" ? (item.there?.revision ?? null) : null;
    return [{ at: item.at, title: how === "rename" ? title.trim() : "", replaces }];
  });
}

/** Why it cannot begin; null when it can. */
export function refusedBecause(items: readonly ReadItem[], wishes: readonly Wish[]): string | null {
  const open = items.filter((_, index) => wishes[index]!.how === "ask");
  if (open.length > 0)
    return `Choose what to do with ${open[0]!.title}${open.length > 1 ? ` and ${open.length - 1} more` : ""}.`;
  if (wishes.some(({ how, title }) => how === "rename" && titleFault(title)))
    return "Enter a name for each new pipeline.";
  return toImport(items, wishes).length === 0 ? "There is nothing to import." : null;
}
