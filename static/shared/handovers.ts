/** What is shown about a handover: its phases, what happens now, how it ended. Pure. */
import table from "../../pipeline_runtime/handover/phases.json";
import { plural } from "./format";
import type { Handover, LiveElement, Strategy } from "./types";

type PhaseState = "done" | "active" | "todo" | "skipped" | "failed";

export interface PhaseRow {
  phase: string;
  state: PhaseState;
  start_ms: number | null;
  end_ms: number | null;
  bytes: number | null;
  note: string | null;
  behind: number | null;
}

/** Each strategy's words, and the phases that it goes through when nothing goes wrong. */
const STRATEGIES: Record<Strategy, { words: string; phases: readonly string[] }> = table.strategies;

/** The phases with which ownership passes. */
export const PASSING: ReadonlySet<string> = new Set(table.passing);

/** `CLAIM_MS_MAX` of the control process, in seconds. */
const CLAIM_S_MAX = 90;

const BEFORE_CUT: ReadonlySet<string> = new Set(
  Object.values(STRATEGIES).flatMap(({ phases }) =>
    phases.slice(
      0,
      phases.findIndex((phase) => PASSING.has(phase)),
    ),
  ),
);

export const strategyWords = (strategy: Strategy): string => STRATEGIES[strategy]?.words ?? strategy;

export const kindWords = (handover: Pick<Handover, "kind" | "strategy">): string =>
  handover.kind !== "restoration"
    ? "Live migration"
    : handover.strategy === "rewind"
      ? "Rewind"
      : "Restoration";

/**
 * All phases from the first moment, including future ones, so that no row appears or moves while somebody
 * looks. A phase outside the plan (CUT turns into CLAIM when the origin dies) comes in between.
 */
export function phaseRows(handover: Handover): PhaseRow[] {
  const plan = STRATEGIES[handover.strategy]?.phases ?? [];
  const entered: PhaseRow[] = handover.timeline.map((entry, index) => ({
    phase: entry.phase,
    state: stateOf(handover, entry.end_ms, index === handover.timeline.length - 1),
    start_ms: entry.start_ms,
    end_ms: entry.end_ms,
    bytes: entry.bytes || null,
    note: entry.note || null,
    behind: entry.behind ?? null,
  }));
  if (plan[0] && !handover.timeline.some((entry) => entry.phase === plan[0]))
    entered.unshift(waiting(handover, plan[0]));
  const reached = Math.max(...entered.map((row) => plan.indexOf(row.phase)));
  const ahead = plan.slice(reached + 1).map((phase) => ({
    phase,
    state: handover.outcome ? ("skipped" as const) : ("todo" as const),
    start_ms: null,
    end_ms: null,
    bytes: null,
    note: null,
    behind: null,
  }));
  return [...entered, ...ahead];
}

function stateOf(handover: Handover, end_ms: number | null, last: boolean): PhaseState {
  if (last && handover.outcome === "failed") return "failed";
  return end_ms === null && !handover.outcome ? "active" : "done";
}

/** The time before the control process takes up the order. It has no entry of its own in the timeline. */
function waiting(handover: Handover, phase: string): PhaseRow {
  const end_ms = handover.timeline[0]?.start_ms ?? null;
  return {
    phase,
    state: stateOf(handover, end_ms, end_ms === null),
    start_ms: Math.min(Date.parse(handover.created_at), end_ms ?? Infinity),
    end_ms,
    bytes: null,
    note: null,
    behind: null,
  };
}

export const activePhase = (handover: Handover): PhaseRow | undefined =>
  phaseRows(handover).find((row) => row.state === "active");

/** How long a phase has taken so far, in ms; null before it begins. */
export function durationOf(row: PhaseRow, now_ms: number): number | null {
  if (row.start_ms === null) return null;
  if (row.end_ms !== null) return Math.max(0, row.end_ms - row.start_ms);
  return row.state === "active" ? Math.max(0, now_ms - row.start_ms) : 0;
}

export const behindWords = (behind: number): string =>
  behind === 0 ? "caught up" : `${plural(behind, "batch", "batches")} behind`;

/** What a phase does, in words, before, during and after it. */
export function phaseWords(handover: Handover, row: Pick<PhaseRow, "phase" | "behind" | "state">): string {
  const origin = handover.origin || "the origin";
  const { target } = handover;
  // said only while it lasts: it may take most of the time
  const slow = handover.begun.start === "cold" && row.state === "active";
  switch (row.phase) {
    case "PENDING":
      return "Waiting for the control process to begin";
    case "PREPARE":
      return `${target} fetches the newest checkpoint and starts; ${origin} keeps running`;
    case "WARM":
      return row.behind === null || row.state !== "active"
        ? `${target} catches up with ${origin}, which keeps running`
        : row.behind === 0
          ? `${target} ${slow ? "starts its first query, which takes a while" : "has caught up and opens its connections"}; ${origin} keeps running`
          : `${target} is ${behindWords(row.behind)}${slow ? ": its first query takes a while to start" : ""}; ${origin} keeps running`;
    case "CUT":
      return `${origin} keeps processing, commits its last batch and so hands over to ${target}`;
    case "STOP":
      return `${origin} finishes its batch, commits and stops`;
    case "COPY":
      return handover.strategy === "rewind"
        ? `${target} fetches the checkpoint to go back to`
        : `${target} fetches the checkpoint`;
    case "CLAIM":
      return row.state === "active"
        ? `${target} has the order to take over, which locks out every older copy. Fogline waits for its answer, for ${CLAIM_S_MAX} s if it fails, is silent or makes no progress`
        : `${target} takes over, which locks out every older copy, and reads on`;
    case "FINISH":
      return handover.strategy === "standby"
        ? `${target} runs, and its first output is awaited to measure the pause; ${origin} stays a standby for a while`
        : `${target} runs, and its first output is awaited to measure the pause; the old copy on ${origin} is removed`;
    default:
      return "";
  }
}

/** The phase in a word or two, for places with little room. */
export function shortPhase(handover: Handover): string {
  const row = activePhase(handover);
  if (!row) return phaseTitle(handover.phase);
  if (row.phase === "WARM" && row.behind !== null) return behindWords(row.behind);
  return phaseTitle(row.phase);
}

const TITLES: Readonly<Record<string, string>> = table.titles;

/** The title of a phase. */
export const phaseTitle = (phase: string): string => TITLES[phase] ?? phase.toLowerCase();

const STEPS_MS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600].map((s) => s * 1000);

/** The end of the time axis: it grows in steps, so that the bars of past phases stay where they are. */
export const axisSpan = (elapsed_ms: number): number =>
  STEPS_MS.find((step) => step >= elapsed_ms) ?? Math.ceil(elapsed_ms / 3_600_000) * 3_600_000;

/** Whether it is a restoration that waits for its target to own. Cancelling ends no more than this wait. */
const claims = (handover: Handover): boolean => handover.kind !== "migration" && handover.phase === "CLAIM";

/** Whether somebody asked to cancel it and that is still possible. */
export const cancelling = (handover: Handover): boolean =>
  handover.cancel_requested &&
  handover.outcome === null &&
  (BEFORE_CUT.has(handover.phase) || claims(handover));

/** Whether the control process ordered it by itself, with a reason. */
export const automatic = (handover: Handover): boolean =>
  handover.created_by === null && handover.reason !== "";

/** What happens to the element of that name when the handover is cancelled. */
export function afterCancel(handover: Handover, element: string, originUp: boolean): string {
  if (claims(handover))
    return `${handover.target} has the order to run ${element}. If it has failed or does not answer, this wait ends, and ${element} can be restored on another node. If it is about to run ${element}, it still does.`;
  const origin = handover.origin || "its node";
  const again = automatic(handover);
  if (handover.kind === "migration" && handover.reason.startsWith("shutdown of "))
    return `${element} stays on ${origin}, which is leaving. It does not run until ${origin} is started again or somebody restores it.`;
  if (handover.reason.startsWith("policy "))
    return `${element} stays on ${origin}. The ${handover.reason} may move it again later: switch the policy off if you do not want that.`;
  if (handover.kind === "migration")
    return `${element} stays on ${origin}.${again ? ` The drain does not move it again, unless ${origin} is drained again.` : ""}`;
  const now = originUp
    ? `${element} stays on ${origin}.`
    : `${element} stays down until ${origin} answers again or somebody restores it.`;
  return `${now}${again ? ` Fogline restores it again only when ${origin} stops answering once more.` : ""}`;
}

/** Why a handover cannot be cancelled now; null when it can. */
export function cancelRefusal(handover: Handover): string | null {
  if (cancelling(handover))
    return claims(handover)
      ? `It ends as soon as ${handover.target} runs the element, fails or falls silent.`
      : "It is being cancelled: it ends at its next step.";
  if (handover.cancellable) return null;
  return handover.kind === "migration"
    ? "It is too late to cancel: ownership is being passed on. You can move the element back afterwards."
    : `It is too late to cancel: ${handover.target} is taking over.`;
}

/** The later of two states of one handover: the answer to a request may be older than a push. */
export function later(a: Handover | undefined, b: Handover | undefined): Handover | undefined {
  if (!a || !b) return a ?? b;
  if ((a.outcome === null) !== (b.outcome === null)) return a.outcome ? a : b;
  return b.timeline.length > a.timeline.length ? b : a;
}

/** What was asked for and what was pushed since, each handover once, newest first. */
export function merged(asked: readonly Handover[], pushed: readonly Handover[]): Handover[] {
  const all = new Map(pushed.map((handover) => [handover.id, handover]));
  for (const handover of asked) all.set(handover.id, later(all.get(handover.id), handover) ?? handover);
  return [...all.values()].sort((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at));
}

export interface WayBack {
  target: string;
  /** the origin still follows, so nothing has to be copied */
  instant: boolean;
}

/** Where a finished handover can be moved back to; null when there is nothing to move back. */
export function wayBack(handover: Handover, element: LiveElement | undefined): WayBack | null {
  if (handover.outcome !== "done" || !handover.origin || !element) return null;
  if (element.node !== handover.target || handover.origin === handover.target) return null;
  const kept = element.replicas.some(
    (replica) => replica.node === handover.origin && replica.role === "standby",
  );
  return { target: handover.origin, instant: kept && element.follow !== "none" };
}
