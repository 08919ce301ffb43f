/** The lines between sites, as the map knows them. */
import { get } from "../../shared/api";
import type { MapLink, SiteMap } from "../../shared/types";
import { useLoaded } from "../../shared/ui/parts";

/** Pure: the latency of the line between two sites, ms one way; of the way back if only that one is known, and
 * null at one site and where nothing is known. */
export function lineMs(
  lines: readonly Pick<MapLink, "a" | "b" | "latency_ms">[],
  from: string | undefined,
  to: string | undefined,
): number | null {
  if (from === to) return null;
  const ms = (a?: string, b?: string) =>
    lines.find((line) => line.a === a && line.b === b)?.latency_ms ?? null;
  return ms(from, to) ?? ms(to, from);
}

const EVERY_MS = 15_000;
const NONE: readonly MapLink[] = [];

/** Empty while they are not known, and when nobody asks. */
export function useLines(asked: boolean): readonly MapLink[] {
  const { data } = useLoaded(
    `lines ${asked}`,
    (signal) => (asked ? get<SiteMap>("/map", signal) : Promise.resolve(null)),
    asked ? EVERY_MS : undefined,
  );
  return data?.links ?? NONE;
}
