/** Notifications of the browser about alarms that are raised while a page of Fogline's alarms is open. */
import { useEffect, useRef, useState } from "react";
import { Bell, BellOff } from "lucide-react";
import { useLive } from "../../shared/live";
import { newAlarms } from "./new-alarms";

const WANTED = "fogline-alarm-notices";
const AT_ONCE_MAX = 3;

const can = () => "Notification" in window;
const isOn = () => can() && Notification.permission === "granted" && localStorage.getItem(WANTED) === "1";

export function useNotices(): void {
  const { alarms, loaded } = useLive();
  const known = useRef<Set<number> | null>(null);
  useEffect(() => {
    if (!loaded) return;
    const found = known.current ? newAlarms(known.current, alarms) : [];
    known.current = new Set(alarms.map(({ id }) => id));
    if (!isOn()) return;
    for (const alarm of found.slice(0, AT_ONCE_MAX)) {
      const more = found.length > AT_ONCE_MAX ? ` (and ${found.length - AT_ONCE_MAX} more)` : "";
      const notice = new Notification(`${alarm.severity}: ${alarm.title}${more}`, {
        body: alarm.message,
        tag: `fogline-alarm-${alarm.id}`,
      });
      notice.onclick = () => {
        window.focus();
        window.location.href = `/alarms/?alarm=${alarm.id}`;
      };
    }
  }, [alarms, loaded]);
}

export function NoticesButton() {
  const [on, setOn] = useState(isOn);
  if (!can()) return null;
  const blocked = Notification.permission === "denied";
  const toggle = async () => {
    if (on) localStorage.removeItem(WANTED);
    else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(WANTED, "1");
    setOn(isOn());
  };
  const Icon = on ? Bell : BellOff;
  return (
    <button
      type="button"
      className="button"
      aria-pressed={on}
      disabled={blocked}
      title={
        blocked
          ? "Your browser blocks notifications of this address. Allow them in its settings."
          : "Your browser notifies you of new alarms while this page is open."
      }
      onClick={() => void toggle()}
    >
      <Icon aria-hidden="true" />
      {on ? "Notifications on" : "Notify me here"}
    </button>
  );
}
