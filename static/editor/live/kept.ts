/** The state of an element, in words and as text. */
import { elementPath } from "../../shared/api";
import { count } from "../../shared/format";
import type { KeptKey, KeptPage } from "../../shared/types";

export const PAGE_ROWS = 20;

export function keptPath(pipeline: string, element: string, search: string, after: string | null): string {
  const asked = new URLSearchParams({ limit: String(PAGE_ROWS) });
  if (search) asked.set("key", search);
  if (after !== null) asked.set("after", after);
  return `${elementPath(pipeline, element)}/state?${asked.toString()}`;
}

export const keyText = ({ key, key_cut }: KeptKey): string => (key_cut ? `${key}…` : key || "(no key)");

/** The state in one line. A state that was cut is the beginning of a JSON text. */
export function compact({ state, state_cut }: KeptKey): string {
  return state_cut ? `${String(state)}…` : JSON.stringify(state);
}

/** The state in several lines; null if one line is enough. */
export function unfolded({ state, state_cut }: KeptKey): string | null {
  if (state_cut) return `${String(state)}…`;
  const lines = JSON.stringify(state, null, 2);
  return lines.includes("\n") ? lines : null;
}

export function keysSay({ keys }: KeptPage): string {
  return `${count(keys)} ${keys === 1 ? "key" : "keys"}`;
}

/** Why no key is shown. */
export function noneSays(page: KeptPage, search: string): string {
  if (search && page.looked !== null)
    return `None of the ${count(page.looked)} keys that were searched matches “${search}”.`;
  if (search) return `No key matches “${search}”.`;
  return "The state is empty. A key appears here when a row has arrived for which something is kept.";
}
