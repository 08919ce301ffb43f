/** What is ordered about dead letters. Each asks first and says its consequence. */
import { elementPath, post } from "../../shared/api";
import { plural } from "../../shared/format";
import type { Allowed, LetterGroup, LetterOrder } from "../../shared/types";
import { confirm } from "../../shared/ui/confirm";
import { toast, toastError } from "../../shared/ui/toast";
import { LETTERS_MAX } from "./letters-words";

export interface Of {
  pipeline: string;
  element: string;
}

export const lettersOrderPath = ({ pipeline, element }: Of): string =>
  `${elementPath(pipeline, element)}/dead-letters`;

async function ordered(path: string, body: unknown, done: string, failed: string): Promise<boolean> {
  try {
    await post<LetterOrder>(path, body);
    toast({ tone: "done", title: done });
    return true;
  } catch (error) {
    toastError(failed, error);
    return false;
  }
}

const body = ({ offsets, reason }: LetterGroup) => ({ offsets: offsets.slice(-LETTERS_MAX), reason });

export async function dropLetters(of: Of, group: LetterGroup): Promise<boolean> {
  const rows = plural(group.count, "row");
  const agreed = await confirm({
    title: `Drop ${rows}?`,
    text: `They are counted and listed no more, and do not come back to the element. You can put them back for as long as the topic holds them, which is 30 days. Reason: ${group.reason}.`,
    action: `Drop ${rows}`,
    danger: true,
  });
  if (!agreed) return false;
  return ordered(`${lettersOrderPath(of)}/drop`, body(group), `${rows} are dropped`, "Nothing was dropped");
}

export async function replayLetters(of: Of, group: LetterGroup, replay: Allowed): Promise<boolean> {
  const rows = plural(group.count, "row");
  const agreed = await confirm({
    title: `Replay ${rows} as they are?`,
    text: `Each comes back exactly once, however often you ask. ${replay.note ?? ""} This cannot be undone.`,
    action: `Replay ${rows}`,
  });
  if (!agreed) return false;
  return ordered(`${lettersOrderPath(of)}/replay`, body(group), `${rows} come back`, "Nothing was replayed");
}

export const putBack = (of: Of, order: LetterOrder): Promise<boolean> =>
  ordered(
    `${lettersOrderPath(of)}/orders/${order.id}/put-back`,
    {},
    `${plural(order.taken, "row")} are put back`,
    "Nothing was put back",
  );
