/** The lines between sites, as the map knows them. */
import { get } from "../../shared/api";
import type { MapLink, SiteMap } from "../../shared/types";
import { useLoaded } from "../../shared/ui/parts";

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
