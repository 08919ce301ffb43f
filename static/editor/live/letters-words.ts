/** What the panel of dead letters asks and says. Pure. */
import { capitalised, instant, moment, plural } from "../../shared/format";
import type { RawRow } from "../../shared/rows/raw";
import type {
  DeadLetters,
  LetterOrder,
  LetterOrderProgress,
  LettersCounted,
  PeekRecord,
} from "../../shared/types";

const LIMIT = 20;

const count = (of: number): string => of.toLocaleString("en");

/** A reason may have 100,000 rows. */
export const rowsWords = (rows: number): string => `${count(rows)} ${rows === 1 ? "row" : "rows"}`;

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

/** What a letter says of its row; null for what it does not say. */
export interface LetterSaid {
  raw: unknown;
  /** the stream from which the row was read */
  stream: string | null;
  /** the partition and the offset there: "partition 0, offset 3" */
  place: string | null;
  key: string | null;
  timeMs: number | null;
}

const PLACE = /^(.+) (partition \d+ offset \d+)$/;

export function letterOf({ value }: PeekRecord): LetterSaid {
  const letter = (value ?? {}) as { raw?: unknown; input?: unknown; key?: unknown; time_ms?: unknown };
  const { time_ms } = letter;
  const [, stream, place] = (typeof letter.input === "string" && PLACE.exec(letter.input)) || [];
  return {
    raw: letter.raw ?? value,
    stream: stream ?? null,
    place: place?.replace(" offset", ", offset") ?? null,
    key: typeof letter.key === "string" ? letter.key : null,
    timeMs: typeof time_ms === "number" && Math.abs(time_ms) <= DATE_MAX_MS ? time_ms : null,
  };
}

/** A letter is written soon after its row: what lies nearer to it than this is the same time. */
const NEAR_MS = 1000;
/** A date cannot be further from 1970. */
const DATE_MAX_MS = 8.64e15;

/** A letter as a row of a table. `topics`: in which the rows lie, by stream. */
export function rawRowOf(record: PeekRecord, topics: Readonly<Record<string, string>>): RawRow {
  const { raw, stream, place, key, timeMs } = letterOf(record);
  const id = `${record.partition}/${record.offset}`;
  const at = timeMs === null ? record.at : new Date(timeMs).toISOString();
  const topic = topics[stream ?? ""];
  const arrived = instant(record.at);
  const said: string[] = [];
  if (key !== null) said.push(`Key ${key}`);
  if (place !== null) said.push(topic === undefined ? place : `topic ${topic}, ${place}`);
  if (arrived !== null && (timeMs === null || Math.abs(arrived - timeMs) > NEAR_MS))
    said.push(`dead letter since ${moment(arrived)}`);
  return { id, at, key, raw, lies: said.length > 0 ? `${capitalised(said.join(", "))}.` : "" };
}

/** How many rows are mended in one go. */
export const MENDED_MAX = 500;

function ofReason(pipeline: string, element: string, what: string, reason: string, text: string): string {
  const asked = new URLSearchParams({ reason });
  if (text) asked.set("text", text);
  return `/pipelines/${encodeURIComponent(pipeline)}/elements/${encodeURIComponent(element)}/dead-letters/${what}?${asked}`;
}

export const mendPath = (pipeline: string, element: string, reason: string, text: string): string =>
  ofReason(pipeline, element, "rows", reason, text);

export const countPath = (pipeline: string, element: string, reason: string, text: string): string =>
  ofReason(pipeline, element, "count", reason, text);

/** Which letters an order about a reason leaves out. */
export function spanWords(
  { reason, text }: { reason: string; text: string },
  { more }: LettersCounted,
): string {
  const said = ["Letters that come from now on are not part of it."];
  if (more) said.push("There are older letters, which were not looked at: order once more for them.");
  if (text) said.push(`Only rows with the text "${text}".`);
  said.push(`Reason: ${reason}.`);
  return said.join(" ");
}

export function orderTitle({ did, mended, letters }: LetterOrder): string {
  const rows = rowsWords(letters);
  if (did === "drop") return `Dropped ${rows}`;
  if (did === "put-back") return `Put ${rows} back`;
  return mended ? `Mended and replayed ${rows}` : `Replayed ${rows}`;
}

/** What has become of an order, as sentences. */
export function orderWords(order: LetterOrder & Partial<LetterOrderProgress>): string {
  const { status, taken, letters, stayed_count } = order;
  if (status === "pending") {
    const done = taken + stayed_count;
    const so_far = done > 0 ? `Under way: ${count(done)} of ${rowsWords(letters)}.` : "Under way.";
    return order.cancel_requested ? `${so_far} It is being cancelled.` : so_far;
  }
  const said: string[] = [];
  if (status === "failed") said.push(`It failed: ${order.message}`);
  if (status === "cancelled") said.push("It was cancelled.");
  if (status === "done" || taken > 0) said.push(takenWords(order));
  if (status !== "done")
    said.push(taken > 0 ? "The others stay as they are." : "The dead letters stay as they are.");
  if (order.read != null) said.push(`${count(order.read)} of them read.`);
  if (order.again) said.push(`${rowsWords(order.again)} became dead letters again.`);
  if (order.before) said.push(`${count(order.before)} had been dropped or replayed before.`);
  if (stayed_count) said.push(`${count(stayed_count)} stayed dead letters.`);
  return said.join(" ");
}

function takenWords({ did, taken }: LetterOrder): string {
  const rows = rowsWords(taken);
  if (did === "drop") return `${rows} dropped.`;
  return did === "put-back" ? `${rows} put back.` : `${rows} came back.`;
}
