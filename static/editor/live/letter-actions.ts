/** What is ordered about dead letters. Each asks first and says its consequence. */
import { elementPath, get, post } from "../../shared/api";
import type { Allowed, LetterOrder, LettersCounted } from "../../shared/types";
import { confirm, meanwhile } from "../../shared/ui/confirm";
import { toast, toastError } from "../../shared/ui/toast";
import { countPath, rowsWords, spanWords } from "./letters-words";

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

/** What a person sees of a reason, and wants something done about. */
export interface Reason {
  reason: string;
  /** what the letters were searched for; empty for nothing */
  text: string;
}

/** How many letters an order would be about; null if there are none, nobody knows, or the user gave up. */
async function counted(of: Of, { reason, text }: Reason, failed: string): Promise<LettersCounted | null> {
  try {
    const path = countPath(of.pipeline, of.element, reason, text);
    const found = await meanwhile(
      "Counting dead letters",
      `How many of this reason are open is being counted, which may take some seconds. Reason: ${reason}.`,
      (signal) => get<LettersCounted>(path, signal),
    );
    if (found === null || found.letters > 0) return found;
    toast({ tone: "info", title: failed, text: "No dead letter of this reason is open any more." });
    return null;
  } catch (error) {
    toastError(failed, error);
    return null;
  }
}

export const allOf = ({ reason, text }: Reason, { first, until }: LettersCounted) => ({
  reason,
  span: { first, until, text },
});

export async function dropLetters(of: Of, asked: Reason): Promise<boolean> {
  const failed = "Nothing was dropped";
  const found = await counted(of, asked, failed);
  if (found === null) return false;
  const rows = rowsWords(found.letters);
  const agreed = await confirm({
    title: `Drop ${rows}?`,
    text: `They are counted and listed no more, and do not come back to the element. You can put them back for as long as the topic holds them, which is 30 days. ${spanWords(asked, found)}`,
    action: `Drop ${rows}`,
    danger: true,
  });
  if (!agreed) return false;
  return ordered(`${lettersOrderPath(of)}/drop`, allOf(asked, found), `${rows} are dropped`, failed);
}

export async function replayLetters(of: Of, asked: Reason, replay: Allowed): Promise<boolean> {
  const failed = "Nothing was replayed";
  const found = await counted(of, asked, failed);
  if (found === null) return false;
  const rows = rowsWords(found.letters);
  const agreed = await confirm({
    title: `Replay ${rows} as they are?`,
    text: `Each comes back exactly once, however often you ask. ${replay.note ?? ""} This cannot be undone. ${spanWords(asked, found)}`,
    action: `Replay ${rows}`,
  });
  if (!agreed) return false;
  return ordered(`${lettersOrderPath(of)}/replay`, allOf(asked, found), `${rows} come back`, failed);
}

export const cancelOrder = (of: Of, order: LetterOrder): Promise<boolean> =>
  ordered(
    `${lettersOrderPath(of)}/orders/${order.id}/cancel`,
    {},
    "It ends. What was done stays done",
    "It was not cancelled",
  );

export const putBack = (of: Of, order: LetterOrder): Promise<boolean> =>
  ordered(
    `${lettersOrderPath(of)}/orders/${order.id}/put-back`,
    {},
    `${rowsWords(order.taken)} are put back`,
    "Nothing was put back",
  );
