/** Whether the figures on the screen are current. Pure. */
import { exact, seconds, toTheSecond } from "./format";

export interface Connection {
  connected: boolean;
  /** when the newest message arrived, ms since the epoch; null before the first one */
  heard: number | null;
  signedOut: boolean;
}

/** live: the figures are current. connecting: there are none yet. lost: the figures are old. */
export type Contact = "live" | "connecting" | "lost" | "signed out";

/** How long an open connection may be silent. The server is asked before that, and it may be busy. */
const SILENT_MS = 10_000;
/** A closed connection is opened again at once. If that takes longer than this, the page says so. */
const CLOSED_MS = 3000;

/** `n`: the number of the newest message taken; null: no snapshot since the connection opened. */
export function contactOf(state: Connection & { n: number | null }, now_ms: number): Contact {
  const { connected, heard, signedOut, n } = state;
  if (signedOut) return "signed out";
  if (heard === null) return "connecting";
  // a restored connection shows nothing new before its snapshot
  const following = connected && n !== null;
  return now_ms - heard > (following ? SILENT_MS : CLOSED_MS) ? "lost" : "live";
}

/** How long a page waits for its first figures before it says that there is no contact. */
const FIRST_MS = 10_000;

/** What the bar says; null when there is no bar. `opened`: when the page was opened, ms since the epoch. */
export function contactWords(
  contact: Contact,
  heard: number | null,
  opened: number,
  now_ms: number,
): string | null {
  if (contact === "lost" && heard !== null)
    return `No contact for ${lasting(now_ms - heard)}; the figures are from ${timeOf(heard, now_ms)}.`;
  if (contact === "connecting" && now_ms - opened > FIRST_MS)
    return `No contact for ${lasting(now_ms - opened)}; there are no figures yet.`;
  return null;
}

const lasting = (ms: number): string => (ms < 3_600_000 ? seconds(ms) : `${Math.floor(ms / 3_600_000)} h`);

/** A time of another day is shown with its date. */
const timeOf = (at_ms: number, now_ms: number): string =>
  new Date(at_ms).toDateString() === new Date(now_ms).toDateString() ? toTheSecond(at_ms) : exact(at_ms);
