/** What the panel of dead letters asks and says. Pure. */
import { plural } from "../../shared/format";
import type { DeadLetters, LetterOrder, LetterOrderProgress, PeekRecord } from "../../shared/types";

const LIMIT = 20;

const ofStream = (pipeline: string, element: string): string =>
  `/pipelines/${encodeURIComponent(pipeline)}/streams/${encodeURIComponent(element)}/dead-letters`;

/** `reason`: the group whose rows are wanted; empty for none */
export function lettersPath(pipeline: string, element: string, text: string, reason = ""): string {
  const asked = new URLSearchParams({ limit: String(LIMIT) });
  if (text) asked.set("text", text);
  if (reason) asked.set("reason", reason);
  return `${ofStream(pipeline, element)}?${asked}`;
}

export const filePath = (pipeline: string, element: string, format: "csv" | "json-lines"): string =>
  `/api/v1${ofStream(pipeline, element)}/file?format=${format}`;

/** How many letters there are and for how many reasons, as one sentence. */
export function lettersWords({ groups, groups_left_out, looked, more }: DeadLetters): string {
  const reasons = groups.length + groups_left_out;
  const of = more ? `the newest ${looked.toLocaleString("en")} letters` : plural(looked, "letter");
  if (reasons === 0) return `None of ${of} has this text.`;
  const rare = groups_left_out ? `; the ${plural(groups_left_out, "rarest", "rarest")} are not listed` : "";
  return `${plural(reasons, "reason")} in ${of}${rare}.`;
}

/** The row that a letter quotes, and where it stood in the stream that was read, if the letter says it. */
export function letterOf({ value }: PeekRecord): { raw: unknown; place: string | null } {
  const letter = (value ?? {}) as { raw?: unknown; input?: unknown };
  return { raw: letter.raw ?? value, place: typeof letter.input === "string" ? letter.input : null };
}

/** How many letters one order takes. */
export const LETTERS_MAX = 1000;
/** How many rows are mended in one go. */
export const MENDED_MAX = 500;

export const mendPath = (pipeline: string, element: string, reason: string, text: string): string => {
  const asked = new URLSearchParams({ reason });
  if (text) asked.set("text", text);
  return `/pipelines/${encodeURIComponent(pipeline)}/elements/${encodeURIComponent(element)}/dead-letters/rows?${asked}`;
};

export function orderTitle({ did, mended, letters }: LetterOrder): string {
  const rows = plural(letters, "row");
  if (did === "drop") return `Dropped ${rows}`;
  if (did === "put-back") return `Put ${rows} back`;
  return mended ? `Mended and replayed ${rows}` : `Replayed ${rows}`;
}

/** What has become of an order, as sentences. */
export function orderWords(order: LetterOrder & Partial<LetterOrderProgress>): string {
  if (order.status === "pending") return "Under way.";
  if (order.status === "failed") return `It failed: ${order.message} The dead letters stay as they are.`;
  const said = [takenWords(order)];
  if (order.read != null) said.push(`${order.read.toLocaleString("en")} of them read.`);
  if (order.again) said.push(`${plural(order.again, "row")} became dead letters again.`);
  if (order.before) said.push(`${order.before.toLocaleString("en")} had been dropped or replayed before.`);
  if (order.stayed_count) said.push(`${order.stayed_count.toLocaleString("en")} stayed dead letters.`);
  return said.join(" ");
}

function takenWords({ did, taken }: LetterOrder): string {
  const rows = plural(taken, "row");
  if (did === "drop") return `${rows} dropped.`;
  return did === "put-back" ? `${rows} put back.` : `${rows} came back.`;
}
