import { startClock, useNow } from "./clock";
import { live, useLive, type Connection } from "./live";

/** Older than this and the page says how old it is. */
const OLD_MS = 14_000;

function titleOf(state: string, { connected, heard, signedOut }: Connection): string {
  if (signedOut) return "You are signed out: what you see is old.";
  if (state === "live") return "Connected to the server";
  if (heard === null) return "The server is being connected.";
  return connected
    ? "What you see is old. The server is asked; without an answer the connection is opened again."
    : "What you see is old; the connection is being opened again.";
}

/** Fill the rail's `[data-shell=live]`: "live", or how old what is shown is. */
export function showLive(place: HTMLElement): void {
  const dot = document.createElement("span");
  dot.className = "live-dot";
  dot.setAttribute("aria-hidden", "true");
  const word = document.createElement("span");
  word.className = "rail__word";
  place.append(dot, word);
  const show = () => {
    const { connected, heard, loaded, signedOut } = useLive.getState();
    const age = heard === null ? null : Date.now() - heard;
    const old = !connected || (age !== null && age > OLD_MS);
    const state = !loaded && connected ? "waiting" : old ? "old" : "live";
    const age_s = Math.round((age ?? 0) / 1000);
    const text = signedOut
      ? "signed out"
      : state === "live"
        ? "live"
        : heard === null
          ? "connecting"
          : `${age_s} s old`;
    if (place.dataset.state !== state) place.dataset.state = state;
    const title = titleOf(state, { connected, heard, signedOut });
    if (place.title !== title) place.title = title;
    // a live region that changes each second would be read out each second
    place.setAttribute("aria-label", state === "live" ? "Live" : "Not live, reconnecting");
    if (word.textContent !== text) word.textContent = text;
  };
  startClock();
  live.start();
  useNow.subscribe(show);
  useLive.subscribe(show);
  show();
}
