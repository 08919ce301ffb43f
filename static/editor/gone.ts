/** What became of a pipeline that somebody else renamed or deleted while its draft was open here. */
import { get } from "../shared/api";
import type { PipelineItem } from "../shared/types";
import { renameCopies } from "../shared/local-copies";
import { renameHistory } from "./undo-copies";

/** In the address of the page that follows a new name: the name before. */
export const WAS = "was";

/** The pipeline as it is now, under whatever name; throws ApiError when the server cannot say. */
export async function becameOf(id: number, name: string): Promise<PipelineItem | "deleted"> {
  const all = await get<PipelineItem[]>("/pipelines");
  const now = all.find((each) => each.id === id);
  // one of the same name may have been made since: it has a draft of its own, with which ours is merged
  return now ?? all.find((each) => each.name === name) ?? "deleted";
}

/** Goes on under the new name, with what is not saved yet and with the steps of undo. */
export function follow(before: string, now: Pick<PipelineItem, "name">): void {
  renameCopies(before, now.name);
  renameHistory(before, now.name);
  const address = new URL(window.location.href);
  address.pathname = `/pipelines/${encodeURIComponent(now.name)}`;
  address.searchParams.set(WAS, before);
  window.location.replace(address);
}
