import { useState } from "react";
import { Bell, BellOff } from "lucide-react";
import { useLive } from "../../shared/live";
import { canNotify, isNotifying, startNotifying, stopNotifying } from "../../shared/alarm-notices";

/** Switches the browser's notifications on and off. Only a click on it asks for the permission. */
export function NoticesButton() {
  const [on, setOn] = useState(isNotifying);
  const loaded = useLive(({ loaded }) => loaded);
  if (!canNotify()) return null;
  const blocked = Notification.permission === "denied";
  const toggle = async () => {
    if (on) stopNotifying();
    else await startNotifying();
    setOn(isNotifying());
  };
  const Icon = on ? Bell : BellOff;
  return (
    <button
      type="button"
      className="button"
      aria-pressed={on}
      // what is open now is known already, so it has to be here
      disabled={blocked || !loaded}
      title={
        blocked
          ? "Your browser blocks notifications of this address. Allow them in its settings."
          : "Your browser notifies you of new alarms while any page of Fogline is open."
      }
      onClick={() => void toggle()}
    >
      <Icon aria-hidden="true" />
      {on ? "Notifications on" : "Notify me here"}
    </button>
  );
}
