import { startClock, useNow } from "./clock";
import { contactOf, contactWords, type Contact } from "./contact";
import { seconds } from "./format";
import { live, useLive } from "./live";
import "./contact.css";

const TITLES: Record<Contact, string> = {
  live: "Connected to the server",
  connecting: "Connecting to the server.",
  lost: "The figures are old; the page is reconnecting to the server.",
  "signed out": "You are signed out, and the figures are old.",
};

const SAID: Record<Contact, string> = {
  live: "Live",
  connecting: "Connecting",
  lost: "No contact",
  "signed out": "Signed out",
};

/**
 * Says on every page whether the figures are current: in the rail's `[data-shell=live]`, and in a bar
 * across the view when they are not. `data-contact` at the root element greys figures and status
 * (contact.css).
 */
export function showLive(place: HTMLElement): void {
  const opened = Date.now();
  const mark = railMark(place);
  const bar = contactBar();
  const show = () => {
    const state = useLive.getState();
    const now = Date.now();
    const contact = contactOf(state, now);
    const { dataset } = document.documentElement;
    if (dataset.contact !== contact) dataset.contact = contact;
    mark(contact, state.heard, now);
    bar(contactWords(contact, state.heard, opened, now));
  };
  startClock();
  live.start();
  useNow.subscribe(show);
  useLive.subscribe(show);
  show();
}

const setText = (place: HTMLElement, text: string) => {
  if (place.textContent !== text) place.textContent = text;
};

function part(name: "span" | "div", className: string, hidden = false): HTMLElement {
  const made = document.createElement(name);
  made.className = className;
  if (hidden) made.setAttribute("aria-hidden", "true");
  return made;
}

/** "live", or how old the figures are. */
function railMark(place: HTMLElement) {
  const word = part("span", "rail__word");
  place.append(part("span", "live-dot", true), word);
  return (contact: Contact, heard: number | null, now_ms: number) => {
    if (place.dataset.state !== contact) place.dataset.state = contact;
    if (place.title !== TITLES[contact]) place.title = TITLES[contact];
    // a live region that changes every second would be read out every second
    if (place.ariaLabel !== SAID[contact]) place.ariaLabel = SAID[contact];
    const lost = contact === "lost" && heard !== null;
    setText(word, lost ? `${seconds(now_ms - heard)} old` : contact);
  };
}

/**
 * The bar lies over the end of the view, and the view can be scrolled by its height, so nothing moves when
 * it appears.
 */
function contactBar() {
  const bar = part("div", "contact-bar");
  bar.hidden = true;
  bar.role = "region";
  bar.ariaLabel = "Contact with the server";
  const text = part("span", "contact-bar__text num", true);
  const said = part("span", "visually-hidden");
  said.role = "alert";
  const more = part("span", "contact-bar__more");
  more.textContent = "Running pipelines keep running. The page tries again automatically.";
  const again = document.createElement("button");
  again.type = "button";
  again.className = "button button--small";
  again.textContent = "Try now";
  again.addEventListener("click", () => live.wake());
  bar.append(part("span", "contact-bar__mark", true), text, said, more, again);
  document.body.append(bar);
  return (words: string | null) => {
    bar.hidden = words === null;
    setText(text, words ?? "");
    setText(said, words === null ? "" : "No contact with the server: the figures are old.");
  };
}
