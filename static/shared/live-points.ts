import { useEffect, useMemo, useState } from "react";
import { get } from "./api";
import { withGaps, withNewest } from "./points";
import { useLoaded } from "./ui/parts";

/**
 * The points of a chart, oldest first: the history at `path`, and after it `newest` as the live connection
 * brings it. `newest` has to be the same object as long as it says the same.
 */
export function useLivePoints<P extends { t: number }>(path: string, newest: P | null) {
  const { data, error, reload } = useLoaded(
    `history ${path}`,
    (signal) => get<{ points: P[] }>(`${path}/history`, signal),
    60_000,
  );
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
