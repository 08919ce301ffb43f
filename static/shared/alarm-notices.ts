/**
 * Notifications of the browser about alarms, while any page of Fogline is open. The pages of a browser share
 * what they have told of, so each alarm is told of once, also by several tabs and from one page to the next.
 */
import { useLive } from "./live";
import { newAlarms } from "./new-alarms";
import type { Alarm } from "./types";

const KNOWN = "fogline-alarms-known";
const AT_ONCE_MAX = 3;

export const canNotify = () => "Notification" in window && "locks" in navigator;
export const isNotifying = () =>
  canNotify() && Notification.permission === "granted" && localStorage.getItem(KNOWN) !== null;

/** Asks the user for the permission; call it by a click. The alarms that are open now are known already. */
export async function startNotifying(): Promise<void> {
  if ((await Notification.requestPermission()) !== "granted") return;
  localStorage.setItem(KNOWN, JSON.stringify(newAlarms([], useLive.getState().alarms).known));
}

export function stopNotifying(): void {
  localStorage.removeItem(KNOWN);
}

/** Called once by each page. */
export function notifyOfAlarms(): void {
  let seen: readonly Alarm[] | null = null;
  const look = ({ alarms, loaded }: { alarms: readonly Alarm[]; loaded: boolean }) => {
    if (!loaded || alarms === seen) return;
    seen = alarms;
    // one page of the browser after the other
    if (isNotifying()) void navigator.locks.request(KNOWN, () => tell(alarms));
  };
  look(useLive.getState());
  useLive.subscribe(look);
}

function tell(alarms: readonly Alarm[]): void {
  if (!isNotifying()) return;
  const { found, known } = newAlarms(remembered(), alarms);
  localStorage.setItem(KNOWN, JSON.stringify(known));
  const more = found.length > AT_ONCE_MAX ? ` (and ${found.length - AT_ONCE_MAX} more)` : "";
  for (const alarm of found.slice(0, AT_ONCE_MAX)) {
    const notice = new Notification(`${alarm.severity}: ${alarm.title}${more}`, {
      body: alarm.message,
      // one that got worse is a new notification: the browser replaces those of one tag without a sound
      tag: `fogline-alarm-${alarm.id}-${alarm.severity}`,
    });
    notice.onclick = () => {
      window.focus();
      window.location.href = `/alarms/?alarm=${alarm.id}`;
    };
  }
}

function remembered(): string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KNOWN) ?? "[]");
    return Array.isArray(found) ? found.map(String) : [];
  } catch {
    return [];
  }
}
