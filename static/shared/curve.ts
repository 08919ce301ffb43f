/** The rows that a live chart draws: asked for once, then only what is new. */
import { useEffect, useRef, useState } from "react";
import { get } from "./api";
import { instant, plural } from "./format";
import type { Span } from "./time-range";
import type { Curve, CurveSpan, PeekRecord } from "./types";

export interface Gathered {
  /** oldest first */
  records: PeekRecord[];
  /** how many rows they stand for */
  rows: number;
  /** older rows of the range that were not read */
  left_out: number;
}

/** What is asked for: where, and which of its rows. */
export interface CurveAsk {
  /** of the route, without its query; for whoever asks by himself, a name */
  path: string;
  /** more of the query */
  query: [string, string][];
  window_ms: number;
  /** a range of time that stays; null follows the stream */
  held: Span | null;
  /** how often what is new is asked for, ms; else each second */
  every_ms?: number;
  /** asks in place of a request of its own */
  load?: (span: CurveSpan) => Promise<Curve>;
}

const EVERY_MS = 1000;
const EVERY_UNSEEN_MS = 5000;
const PIXELS = 800;

const atOf = (record: PeekRecord): number => instant(record.at) ?? 0;

function spanOf({ window_ms, held }: CurveAsk, cursor: string): CurveSpan {
  if (held) return { pixels: PIXELS, window_ms, from_ms: Math.floor(held.from), to_ms: Math.ceil(held.to) };
  return { pixels: PIXELS, window_ms, ...(cursor && { after: cursor }) };
}

function addressOf(ask: CurveAsk, cursor: string): string {
  const span = Object.entries(spanOf(ask, cursor)).map(([name, value]) => [name, String(value)]);
  return `${ask.path}?${new URLSearchParams([...span, ...ask.query]).toString()}`;
}

/** The query for columns of a stream: a curve for each, or for each value of `by`. */
export const columnQuery = (columns: string[], by: string | null, marks: string[]): [string, string][] => [
  ...columns.map((column): [string, string] => ["columns", column]),
  ...marks.map((mark): [string, string] => ["marks", mark]),
  ...(by ? [["by", by] satisfies [string, string]] : []),
];

/** Tells one question from another. */
export const curveKey = (ask: CurveAsk): string => addressOf(ask, "");

/** What one answer stands for, and the times between which it lies. */
interface Part {
  from: number;
  until: number;
  rows: number;
  left_out: number;
  /** when its rows came, if it has all of them; else null */
  times: number[] | null;
}

/** How much of a part lies behind `begin`, if its rows came evenly. */
const shareOf = ({ from, until }: Part, begin: number): number =>
  from >= begin ? 1 : until <= begin ? 0 : (until - begin) / (until - from);

const rowsOf = (part: Part, begin: number): number =>
  part.times?.filter((time) => time >= begin).length ?? part.rows * shareOf(part, begin);

/** What was gathered before and what came since, without what is older than the window. */
export class Gathering {
  private seen = new Map<string, PeekRecord>();
  private parts: Part[] = [];

  add(answer: Pick<Curve, "records" | "rows" | "left_out">, window_ms: number): Gathered {
    for (const record of answer.records) this.seen.set(`${record.partition}/${record.offset}`, record);
    const records = [...this.seen.values()].sort((a, b) => atOf(a) - atOf(b));
    const newest = records.length ? atOf(records[records.length - 1] as PeekRecord) : 0;
    const begin = newest - window_ms;
    const inside = records.filter((record) => atOf(record) >= begin);
    for (const record of records.slice(0, records.length - inside.length))
      this.seen.delete(`${record.partition}/${record.offset}`);
    const times = answer.records.map(atOf);
    if (times.length)
      this.parts.push({
        from: Math.min(...times),
        until: Math.max(...times),
        rows: answer.rows,
        left_out: answer.left_out,
        times: answer.rows === times.length ? times : null,
      });
    this.parts = this.parts.filter((part) => part.until >= begin);
    const rows = this.parts.reduce((sum, part) => sum + rowsOf(part, begin), 0);
    const left_out = this.parts.reduce((sum, part) => sum + part.left_out * shareOf(part, begin), 0);
    return { records: inside, rows: Math.round(rows), left_out: Math.round(left_out) };
  }
}

/** Asks until the returned function is called: once for a range that stays, else on and on for what is new. */
export function followCurve(
  ask: CurveAsk,
  take: (gathered: Gathered) => void,
  fail: (error: unknown) => void,
): () => void {
  const gathering = new Gathering();
  let over = false;
  let timer = 0;
  let cursor = "";
  const next = async () => {
    try {
      const answer = await (ask.load?.(spanOf(ask, cursor)) ?? get<Curve>(addressOf(ask, cursor)));
      if (over) return;
      cursor = answer.cursor;
      take(ask.held ? answer : gathering.add(answer, ask.window_ms));
    } catch (problem) {
      if (!over) fail(problem);
    }
    // the next question only after the answer: a slow server is not asked twice
    const seen = document.visibilityState === "visible";
    const wait = Math.max(ask.every_ms ?? EVERY_MS, seen ? 0 : EVERY_UNSEEN_MS);
    if (!over && !ask.held) timer = window.setTimeout(() => void next(), wait);
  };
  void next();
  return () => {
    over = true;
    window.clearTimeout(timer);
  };
}

/** What one curve shows; null for `ask` asks nothing. */
export function useCurve(ask: CurveAsk | null) {
  const [gathered, setGathered] = useState<Gathered | null>(null);
  const [error, setError] = useState<unknown>(null);
  const last = useRef(ask);
  last.current = ask;
  const key = ask && curveKey(ask);
  useEffect(() => {
    if (!last.current) return;
    return followCurve(
      last.current,
      (now) => {
        setGathered(now);
        setError(null);
      },
      setError,
    );
  }, [key]);
  return { gathered, error };
}

/** What a chart does not show, and what its points stand for; "" when it shows every row. Pure. */
export function toldRows({ records, rows, left_out }: Gathered, curves: readonly string[]): string {
  const told = [
    rows > records.length
      ? `About ${rows.toLocaleString("en")} rows, drawn by the least, the greatest and the last of each pixel.`
      : "",
    left_out > 0
      ? `About ${left_out.toLocaleString("en")} older rows of this time are too many to read and are not drawn; zoom in to see them.`
      : "",
    curves.length > 0
      ? `${plural(curves.length, "curve is", "curves are")} not drawn: ${curves.slice(0, 5).join(", ")}${curves.length > 5 ? " …" : ""}`
      : "",
  ];
  return told.filter(Boolean).join(" ");
}
