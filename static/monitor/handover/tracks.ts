/** A handover as two tracks on one time axis. Pure. All times are ms from the change of owner; before is negative. */
import { phaseRows, type PhaseRow } from "../../shared/handovers";
import { millis } from "../../shared/format";
import type { Batch, Handover, HandoverDetails } from "../../shared/types";

export interface Span {
  from: number;
  to: number;
}

/** What a node does with the element for a while. */
export interface Stretch extends Span {
  role: "owns" | "fetches" | "follows" | "claims" | "stopped";
}

export interface Drawn extends Span {
  at: number;
  rows: number;
  wait_ms: number | null;
}

export interface Track {
  node: string;
  stretches: readonly Stretch[];
  batches: readonly Drawn[];
}

export interface Moment {
  at: number;
  /** on which track it lies; both: it passes from one to the other */
  on: "origin" | "target" | "both" | "control";
  words: string;
  /** what gave the time: the clocks of different machines may differ a little */
  clock: "broker" | "control";
}

export interface Tracks {
  /** ms since the epoch of the change of owner, or of the order while there is none */
  zero_ms: number;
  whole: Span;
  /** around the change of owner; null without one */
  cut: Span | null;
  phases: readonly (Span & { phase: string; state: PhaseRow["state"] })[];
  origin: Track;
  target: Track;
  moments: readonly Moment[];
  /** while rows waited: longer than usual from `usual` on; null where nothing was measured */
  wait: (Span & { usual: number }) | null;
}

/** Around the picture of the whole move, as a part of its length. */
const MARGIN = 0.03;
const CUT_MS_MIN = 40;

export function tracksOf(handover: Handover, written: HandoverDetails["written"], now_ms: number): Tracks {
  const rows = phaseRows(handover);
  const { at_ms, last_commit_at_ms, first_commit_at_ms } = handover.measured;
  const ordered = Math.min(...rows.flatMap(({ start_ms }) => start_ms ?? []));
  const ended = handover.ended_at === null ? null : Date.parse(handover.ended_at);
  const zero = at_ms ?? ordered;
  const rel = (ms: number): number => ms - zero;
  const batches = drawnOf(written?.batches ?? [], rel);
  const before = batches.filter(({ at }) => at <= 0);
  const cut = cutOf(handover, before, rel);
  const end = Math.max(rel(ended ?? now_ms), rel(first_commit_at_ms ?? zero));
  const start = Math.min(rel(ordered), rel(last_commit_at_ms ?? ordered));
  const margin = Math.max(1, (end - start) * MARGIN);
  const whole = {
    from: Math.min(start - margin, cut?.from ?? 0),
    to: Math.max(end + margin, cut?.to ?? 0),
  };
  return {
    zero_ms: zero,
    whole,
    cut,
    phases: rows
      .filter((row) => row.start_ms !== null)
      .map(({ phase, state, start_ms, end_ms }) => ({
        phase,
        state,
        from: rel(start_ms ?? zero),
        to: rel(end_ms ?? ended ?? now_ms),
      })),
    origin: { node: handover.origin, stretches: originDoes(handover, rows, rel, whole), batches: before },
    target: {
      node: handover.target,
      stretches: targetDoes(handover, rows, rel, whole),
      batches: batches.filter(({ at }) => at > 0),
    },
    moments: momentsOf(handover, written, rel, ordered, ended),
    wait: waitOf(handover, rel),
  };
}

function drawnOf(batches: readonly Batch[], rel: (ms: number) => number): Drawn[] {
  return batches.map(({ at_ms, rows, wait_ms }) => {
    const at = rel(at_ms);
    return { at, from: at - (wait_ms ?? 0), to: at, rows, wait_ms };
  });
}

/** Three batches of the old owner and the first of the new one, with room around them. */
function cutOf(handover: Handover, before: readonly Drawn[], rel: (ms: number) => number): Span | null {
  const { at_ms, last_commit_at_ms, first_commit_at_ms } = handover.measured;
  if (at_ms == null || first_commit_at_ms == null) return null;
  const first = rel(first_commit_at_ms);
  const last = Math.min(0, rel(last_commit_at_ms ?? at_ms));
  const gap = Math.max(CUT_MS_MIN, first - last, handover.pause?.waited_ms ?? 0);
  const third = before[Math.max(0, before.length - 3)]?.from ?? last;
  return { from: Math.max(third, last - 6 * gap) - 0.4 * gap, to: first + 1.4 * gap };
}

const began = (rows: readonly PhaseRow[], phase: string): number | null =>
  rows.find((row) => row.phase === phase)?.start_ms ?? null;

/** Stretches from their beginnings: each lasts until the next one; those without a beginning are left out. */
function inTurn(begins: readonly [Stretch["role"], number | null][], to: number): Stretch[] {
  const known = begins.flatMap(([role, from]) => (from === null ? [] : [{ role, from }]));
  return known
    .map(({ role, from }, index) => ({ role, from, to: known[index + 1]?.from ?? to }))
    .filter((stretch) => stretch.to > stretch.from);
}

function originDoes(
  handover: Handover,
  rows: readonly PhaseRow[],
  rel: (ms: number) => number,
  whole: Span,
): Stretch[] {
  const { at_ms, last_commit_at_ms } = handover.measured;
  const passed = at_ms == null ? null : rel(at_ms);
  const owns: [Stretch["role"], number] = ["owns", whole.from];
  if (handover.strategy === "standby")
    return inTurn([owns, ["follows", handover.outcome === "done" ? passed : null]], whole.to);
  const stop = handover.strategy === "stop-and-copy" ? began(rows, "COPY") : null;
  if (handover.strategy === "stop-and-copy")
    return inTurn([owns, ["stopped", stop === null ? null : rel(stop)]], whole.to);
  // a restoration: it wrote nothing more after its last batch
  if (last_commit_at_ms == null) return [];
  return [{ role: "owns", from: whole.from, to: rel(last_commit_at_ms) }];
}

function targetDoes(
  handover: Handover,
  rows: readonly PhaseRow[],
  rel: (ms: number) => number,
  whole: Span,
): Stretch[] {
  const of = (phase: string): number | null => {
    const ms = began(rows, phase);
    return ms === null ? null : rel(ms);
  };
  const { at_ms } = handover.measured;
  const owns: [Stretch["role"], number | null] = ["owns", at_ms == null ? of("FINISH") : rel(at_ms)];
  const end = handover.outcome === null || handover.outcome === "done" ? whole.to : lastEnd(rows, rel);
  if (handover.strategy === "hot-standby")
    return inTurn([["follows", whole.from], ["claims", of("CLAIM")], owns], end);
  if (handover.strategy === "standby") {
    const had = handover.begun.start === "follows";
    const begins: [Stretch["role"], number | null][] = had
      ? [["follows", whole.from]]
      : [
          ["fetches", of("PREPARE")],
          ["follows", of("WARM")],
        ];
    return inTurn([...begins, ["claims", of("CLAIM")], owns], end);
  }
  return inTurn([["fetches", of("COPY")], ["claims", of("CLAIM")], owns], end);
}

const lastEnd = (rows: readonly PhaseRow[], rel: (ms: number) => number): number =>
  Math.max(...rows.flatMap(({ end_ms }) => (end_ms === null ? [] : [rel(end_ms)])));

function momentsOf(
  handover: Handover,
  written: HandoverDetails["written"],
  rel: (ms: number) => number,
  ordered: number,
  ended: number | null,
): Moment[] {
  const { origin, target, measured, pause } = handover;
  const { last_commit_at_ms, first_commit_at_ms } = measured;
  const owner = origin || "the old owner";
  const found: Moment[] = [
    { at: rel(ordered), on: "control", words: "The move is ordered", clock: "control" },
  ];
  const add = (at_ms: number | null | undefined, on: Moment["on"], words: string) => {
    if (at_ms != null) found.push({ at: rel(at_ms), on, words, clock: "broker" });
  };
  const words: Record<string, [Moment["on"], string]> = {
    armed: ["target", `${target} has armed itself as the successor`],
    announced: ["origin", `${owner} announces its last batches`],
    released: ["both", `${owner} releases: ${target} owns`],
    claimed: ["both", `${target} claims, and owns`],
  };
  const marks = written?.marks ?? [];
  for (const { what, at_ms } of marks) add(at_ms, ...(words[what] ?? ["control", what]));
  if (!marks.length) add(measured.at_ms, "both", `${target} owns`);
  add(last_commit_at_ms, "origin", `Last batch of ${owner}`);
  if (pause?.waited_ms != null && first_commit_at_ms != null)
    add(first_commit_at_ms - pause.waited_ms, "target", `A row waits that ${target} is to process`);
  add(first_commit_at_ms, "target", `First output of ${target}`);
  if (ended !== null)
    found.push({ at: rel(ended), on: "control", words: "The move has ended", clock: "control" });
  return found
    .map((moment, index) => ({ moment, index }))
    .sort((a, b) => a.moment.at - b.moment.at || a.index - b.index)
    .map(({ moment }) => moment);
}

function waitOf(handover: Handover, rel: (ms: number) => number): Tracks["wait"] {
  const { pause, measured } = handover;
  if (!pause || measured.first_commit_at_ms == null) return null;
  const to = rel(measured.first_commit_at_ms);
  const waited = pause.waited_ms ?? pause.ms + (pause.usual_ms ?? 0);
  return { from: to - waited, usual: to - pause.ms, to };
}

/** "−120 ms", "0", "+35 ms". */
export const relative = (at: number): string =>
  Math.abs(at) < 0.5 ? "0" : `${at < 0 ? "−" : "+"}${millis(Math.abs(at))}`;

const STEPS = [1, 2, 5];

/** Where the axis has its marks: about `wanted` round times in a span. */
export function ticksOf({ from, to }: Span, wanted: number): number[] {
  const least = (to - from) / wanted;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, (STEPS.find((each) => each * power >= least) ?? 10) * power);
  const first = Math.ceil(from / step);
  return Array.from(
    { length: Math.max(0, Math.floor(to / step) - first + 1) },
    (_, index) => (first + index) * step,
  );
}

const LEAST_MS = 10;

/** The span by `factor` longer or shorter around `at`, at least 10 ms and within `bounds`. */
export function zoomed(span: Span, factor: number, bounds: Span, at = (span.from + span.to) / 2): Span {
  const length = Math.min(bounds.to - bounds.from, Math.max(LEAST_MS, (span.to - span.from) * factor));
  const part = (at - span.from) / (span.to - span.from);
  return within({ from: at - part * length, to: at + (1 - part) * length }, bounds);
}

/** The span moved by a part of its length, within `bounds`. */
export function shifted(span: Span, part: number, bounds: Span): Span {
  const by = (span.to - span.from) * part;
  return within({ from: span.from + by, to: span.to + by }, bounds);
}

function within({ from, to }: Span, bounds: Span): Span {
  const by = Math.max(0, bounds.from - from) - Math.max(0, to - bounds.to);
  return { from: from + by, to: to + by };
}
