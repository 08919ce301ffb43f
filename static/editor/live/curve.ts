/** The rows that a live chart draws: asked for once, then only what is new. */
import { useEffect, useRef, useState } from "react";
import { get } from "../../shared/api";
import { instant, plural } from "../../shared/format";
import type { Span } from "../../shared/time-range";
import type { PeekRecord } from "../../shared/types";
import type { Peeked } from "./records";

interface Answer extends Peeked {
  rows: number;
  left_out: number;
  cursor: string;
}

export interface Gathered {
  /** oldest first */
  records: PeekRecord[];
  /** how many rows they stand for */
  rows: number;
  /** older rows of the range that were not read */
  left_out: number;
}

interface Asked {
  columns: string[];
  by: string | null;
  marks: string[];
  window_ms: number;
}

const EVERY_MS = 1000;
const EVERY_UNSEEN_MS = 5000;
const PIXELS = 800;

const atOf = (record: PeekRecord): number => instant(record.at) ?? 0;

function queryOf({ columns, by, marks, window_ms }: Asked, more: Record<string, string>): string {
  const query = new URLSearchParams({ pixels: String(PIXELS), window_ms: String(window_ms), ...more });
  for (const column of columns) query.append("columns", column);
  for (const mark of marks) query.append("marks", mark);
  if (by) query.set("by", by);
  return query.toString();
}

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

  add(answer: Pick<Answer, "records" | "rows" | "left_out">, window_ms: number): Gathered {
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

/** `held`: a range of time that stays; null follows the stream. */
export function useCurve(pipeline: string, source: string | null, asked: Asked, held: Span | null) {
  const [gathered, setGathered] = useState<Gathered | null>(null);
  const [error, setError] = useState<unknown>(null);
  const key = `${pipeline} ${source} ${queryOf(asked, {})} ${held?.from} ${held?.to}`;
  const last = useRef(asked);
  last.current = asked;
  useEffect(() => {
    if (!source) return;
    const path = `/pipelines/${encodeURIComponent(pipeline)}/streams/${encodeURIComponent(source)}/curve?`;
    const gathering = new Gathering();
    let over = false;
    let timer = 0;
    let cursor = "";
    const more = (): Record<string, string> =>
      held
        ? { from_ms: String(Math.floor(held.from)), to_ms: String(Math.ceil(held.to)) }
        : cursor
          ? { after: cursor }
          : {};
    const ask = async () => {
      try {
        const answer = await get<Answer>(path + queryOf(last.current, more()));
        if (over) return;
        cursor = answer.cursor;
        setGathered(
          held ? { ...answer, records: answer.records } : gathering.add(answer, last.current.window_ms),
        );
        setError(null);
      } catch (problem) {
        if (!over) setError(problem);
      }
      // the next question only after the answer: a slow server is not asked twice
      const seen = document.visibilityState === "visible";
      if (!over && !held) timer = window.setTimeout(() => void ask(), seen ? EVERY_MS : EVERY_UNSEEN_MS);
    };
    void ask();
    return () => {
      over = true;
      window.clearTimeout(timer);
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps
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
