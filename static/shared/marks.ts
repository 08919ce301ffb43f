/** What happened, as marks in charts: handovers, deployments, checkpoints, faults. Pure. */
import { bytes, instant } from "./format";
import { kindWords, PASSING, phaseTitle } from "./handovers";
import { pauseTold } from "./pause";
import type { Span } from "./time-range";
import type { AttentionLine, Handover, LogEvent } from "./types";

export type MarkKind = "handover" | "deployment" | "checkpoint" | "fault" | "note";

export interface Mark {
  /** ms since the epoch */
  t: number;
  kind: MarkKind;
  text: string;
}

/**
 * The mark is at the time when the owner changed, or at the order if it did not. `name`: the element's
 * name, if several are shown.
 */
export function handoverMark(handover: Handover, name = ""): Mark {
  const passed = handover.timeline.find((entry) => PASSING.has(entry.phase));
  const way = handover.origin ? `from ${handover.origin} to ${handover.target}` : `on ${handover.target}`;
  const { known, value } = pauseTold(handover);
  const pause = known ? `, pause ${value}` : "";
  const state = handover.outcome ?? phaseTitle(handover.phase);
  return {
    t: passed?.start_ms ?? instant(handover.created_at) ?? 0,
    kind: "handover",
    text: `${kindWords(handover)}${name && ` of ${name}`} ${way}: ${state}${pause}`,
  };
}

/** Returns null for an event that is neither a deployment nor a fault. Handovers have their own marks. */
export function eventMark(event: LogEvent | AttentionLine): Mark | null {
  const t = instant(event.at);
  if (t === null || event.kind.startsWith("handover.")) return null;
  const kind = kindOf(event);
  return kind && { t, kind, text: event.message };
}

function kindOf({ kind, severity }: Pick<LogEvent, "kind" | "severity">): MarkKind | null {
  if (severity === "error") return "fault";
  if (kind.startsWith("pipeline.")) return "deployment";
  return severity === "warning" && /^(element|replica|node|connector)\./.test(kind) ? "fault" : null;
}

export const checkpointMark = (checkpoint: {
  seq: number;
  at: string | null;
  bytes: number | null;
}): Mark | null => {
  const t = instant(checkpoint.at);
  return t === null
    ? null
    : { t, kind: "checkpoint", text: `Checkpoint at batch ${checkpoint.seq}, ${bytes(checkpoint.bytes)}` };
};

/** Oldest first, each once. */
export function sortedMarks(marks: (Mark | null)[]): Mark[] {
  const known = new Map(marks.flatMap((mark) => (mark ? [[`${mark.t} ${mark.text}`, mark]] : [])));
  return [...known.values()].sort((a, b) => a.t - b.t);
}

export const marksIn = (marks: Mark[], { from, to }: Span): Mark[] =>
  marks.filter((mark) => mark.t >= from && mark.t <= to);

/** For each time (oldest first) what happened from then until the next one. */
export function marksAt(times: number[], marks: Pick<Mark, "t" | "text">[]): string[] {
  return times.map((time, index) => {
    const next = times[index + 1] ?? Infinity;
    return marks
      .filter((mark) => mark.t < next && (mark.t >= time || index === 0))
      .map((mark) => mark.text)
      .join("; ");
  });
}
