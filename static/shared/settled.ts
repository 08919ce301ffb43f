import { useEffect, useState } from "react";

const SETTLED_MS = 300;

/** The value of an input when the user has stopped changing it. */
export function useSettled<T>(value: T, pause_ms = SETTLED_MS): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), pause_ms);
    return () => window.clearTimeout(timer);
  }, [value, pause_ms]);
  return settled;
}
