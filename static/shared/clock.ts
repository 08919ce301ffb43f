import { create } from "zustand";

/** One tick a second for all relative times of a page. */
export const useNow = create(() => Date.now());

let started = false;
export function startClock(): void {
  if (started) return;
  started = true;
  window.setInterval(() => useNow.setState(Date.now(), true), 1000);
}
