/** What the panel of dead letters asks and says. Pure. */
import { plural } from "../../shared/format";
import type { DeadLetters, PeekRecord } from "../../shared/types";

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
