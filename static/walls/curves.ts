/** The curves of a chart tile: each series follows its stream by itself. */
import { useEffect, useMemo, useRef, useState } from "react";
import { curveKey, followCurve, type CurveAsk, type Gathered } from "../shared/curve";
import { instant } from "../shared/format";
import { useTimeRange, type Span } from "../shared/time-range";
import type { ChartTile } from "../shared/types";
import { DAY_MS, everyOf, RANGE_S } from "./series";
import { askCurve, soon } from "./look";

interface Curves {
  /** by the places of what was asked; undefined where there is no answer yet */
  gathered: (Gathered | undefined)[];
  error: unknown;
}

const NONE: Curves = { gathered: [], error: null };

/** Follows all of them; null for one asks nothing. `turn`: another value begins from the start. */
function useCurves(asks: readonly (CurveAsk | null)[], turn: string): Curves {
  const [curves, setCurves] = useState<Curves>(NONE);
  const last = useRef(asks);
  last.current = asks;
  const key = `${turn} ${asks.map((ask) => ask && curveKey(ask)).join(" ")}`;
  useEffect(() => {
    const stops = last.current.map((ask, index) =>
      ask
        ? followCurve(
            ask,
            (now) =>
              setCurves(({ gathered }) => {
                const next = [...gathered];
                next[index] = now;
                return { gathered: next, error: null };
              }),
            (error) => setCurves(({ gathered }) => ({ gathered, error })),
          )
        : () => undefined,
    );
    soon();
    return () => {
      for (const stop of stops) stop();
    };
  }, [key]);
  return curves;
}

/** The span a day before the newest row, in whole steps: it is not asked for with each new row. */
export function spanBefore(newest: number, range_ms: number): Span {
  const step = Math.max(60_000, range_ms / 60);
  const end = Math.ceil(newest / step) * step - DAY_MS;
  return { from: end - range_ms - step, to: end };
}

/** What a chart tile draws, of today and of the day before. `saved`: the tile as the server has it. */
export function useTileCurves(saved: ChartTile | undefined) {
  const held = useTimeRange((state) => state.held);
  const series = saved?.series ?? [];
  const range_ms = 1000 * (saved?.range_s ?? RANGE_S);
  const tile = saved?.id ?? "";
  const turn = JSON.stringify(series);
  const ask = (index: number, span: Span | null): CurveAsk => ({
    path: tile,
    query: [["series", String(index)]],
    load: (asked) => askCurve({ ...asked, tile, series: index }),
    window_ms: range_ms,
    held: span,
    every_ms: everyOf(range_ms / 1000),
  });
  const today = useCurves(
    series.map((_, index) => ask(index, held)),
    turn,
  );
  const before = useCurves(
    series.map(({ compare_yesterday }, index) => {
      if (!compare_yesterday) return null;
      const newest = instant(today.gathered[index]?.records.at(-1)?.at);
      const span = held
        ? { from: held.from - DAY_MS, to: held.to - DAY_MS }
        : newest && spanBefore(newest, range_ms);
      return span ? ask(index, span) : null;
    }),
    turn,
  );
  return useMemo(
    () => ({ today: today.gathered, before: before.gathered, error: today.error ?? before.error }),
    [today, before],
  );
}
