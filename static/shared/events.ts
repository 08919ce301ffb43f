import { useMemo } from "react";
import { useShallow } from "zustand/react/shallow";
import { get } from "./api";
import { useLive } from "./live";
import type { LogEvent } from "./types";
import { useLoaded } from "./ui/parts";

const EVERY_MS = 60_000;
const EVENTS_MAX = 300;

/**
 * The events of a pipeline or a node, or those whose kind begins with that word. New ones are added as
 * they are pushed. They are in no order.
 */
export function useEvents(of: { pipeline: string } | { node: string } | { kind: string }): LogEvent[] {
  const [[name, value]] = Object.entries(of) as [["pipeline" | "node" | "kind", string]];
  const query = new URLSearchParams({ [name]: value, limit: String(EVENTS_MAX) });
  const { data } = useLoaded(
    `events ${query}`,
    (signal) => (value ? get<LogEvent[]>(`/events?${query}`, signal) : Promise.resolve([])),
    EVERY_MS,
  );
  const isOf = (event: LogEvent) =>
    name === "kind" ? event.kind.startsWith(`${value}.`) : event[name] === value;
  const pushed = useLive(useShallow((state) => state.events.filter(isOf)));
  return useMemo(() => [...pushed, ...(data ?? [])], [pushed, data]);
}
