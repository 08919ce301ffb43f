import { useEffect, useMemo, useRef, useState } from "react";
import { get } from "./api";
import { useLive } from "./live";
import { withGaps, withNewest } from "./points";
import { useLoaded } from "./ui/parts";

/**
 * The points of a chart, oldest first: the history at `path`, and after it `newest` as the live connection
 * brings it. `newest` must stay the same object as long as its content is the same.
 */
export function useLivePoints<P extends { t: number }>(path: string, newest: P | null) {
  const { data, error, reload } = useLoaded(
    `history ${path}`,
    (signal) => get<{ points: P[] }>(`${path}/history`, signal),
    60_000,
  );
  const snapshots = useLive((state) => state.snapshots);
  const seen = useRef(snapshots);
  useEffect(() => {
    // nobody pushed the points that were measured while there was no contact
    if (seen.current !== snapshots) reload();
    seen.current = snapshots;
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [snapshots]);
  const [fresh, setFresh] = useState<P[]>([]);
  useEffect(() => {
    if (newest) setFresh((old) => withNewest(old, newest));
  }, [newest]);
  const points = useMemo(() => {
    const history = data?.points ?? [];
    const until = history.at(-1)?.t ?? 0;
    return withGaps([...history, ...fresh.filter((point) => point.t > until)]);
  }, [data, fresh]);
  return { points, error, reload, loading: data === undefined && !error };
}
