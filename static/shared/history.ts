/** Undo and redo of whole values. Pure: time comes in as a value. */

export interface History<T> {
  past: T[];
  present: T;
  future: T[];
  /** the subject of the newest change; a change of the same subject soon after joins it */
  key: string | null;
  at_ms: number;
}

export const DEPTH_MAX = 200;
/** Keystrokes in one field within this time are one step. */
export const JOIN_MS = 1200;

export function start<T>(present: T): History<T> {
  return { past: [], present, future: [], key: null, at_ms: 0 };
}

export function push<T>(
  history: History<T>,
  present: T,
  now_ms: number,
  key: string | null = null,
): History<T> {
  if (present === history.present) return history;
  const joins =
    key !== null && key === history.key && now_ms - history.at_ms < JOIN_MS && history.past.length > 0;
  const past = joins ? history.past : [...history.past, history.present].slice(-DEPTH_MAX);
  return { past, present, future: [], key, at_ms: now_ms };
}

/** Applies `change` to every past and future value. It is not a step, and undo does not take it back. */
export function mapped<T>(history: History<T>, change: (value: T) => T): History<T> {
  const { past, present, future } = history;
  return { ...history, past: past.map(change), present: change(present), future: future.map(change) };
}

export function undo<T>(history: History<T>): History<T> {
  const previous = history.past.at(-1);
  if (history.past.length === 0) return history;
  return {
    past: history.past.slice(0, -1),
    present: previous as T,
    future: [history.present, ...history.future],
    key: null,
    at_ms: 0,
  };
}

export function redo<T>(history: History<T>): History<T> {
  if (history.future.length === 0) return history;
  const [next, ...rest] = history.future;
  return { past: [...history.past, history.present], present: next as T, future: rest, key: null, at_ms: 0 };
}
