/** Policies in words: what one does, what it found, what it would have done. Pure. */
import { percent, plural } from "./format";
import type { DryRun, Policy, PolicyCode, Standing } from "./types";

export type PolicyFigures = Pick<Policy, "kind" | "threshold" | "for_s" | "moves_per_hour" | "mode">;

/** "When the CPU of a node has been above 80 % for 60 s, …" */
export function policySentence({ kind, threshold, for_s, moves_per_hour, mode }: PolicyFigures): string {
  const lasted = for_s > 0 ? ` for ${for_s} s` : "";
  const when =
    kind === "cpu"
      ? `When a node's CPU has been above ${percent(threshold)}${lasted}`
      : `When a node runs on a battery that has been below ${percent(threshold)}${lasted}`;
  const what =
    kind === "cpu"
      ? "its busiest element that fits elsewhere"
      : "all that it runs, the element with the least state first,";
  if (mode === "advice") return `${when}, you are advised to move ${what.replace(/,$/, "")}.`;
  return `${when}, ${what} is moved, at most ${moves_per_hour} an hour.`;
}

const CODES: Record<PolicyCode, string> = {
  unknown: "not known",
  calm: "calm",
  "not-yet": "not for long enough",
  moving: "something moves first",
  draining: "is drained already",
  empty: "runs nothing",
  refused: "cannot move",
  resting: "rests after a move",
  "no-target": "fits nowhere",
  budget: "budget used up",
  move: "to be moved",
};

export const codeWords = (code: PolicyCode): string => CODES[code];

/** What it says now, the most urgent first: of nodes that are calm there is nothing to tell. */
export function notable(standing: readonly Standing[]): Standing[] {
  const worth = standing.filter(({ code }) => code !== "calm" && code !== "unknown");
  return [...worth].sort((a, b) => Number(b.code === "move") - Number(a.code === "move"));
}

/** One sentence for a dry run, and one for what held it back. */
export function dryRunSentences(run: DryRun): string[] {
  if (run.since === null || run.until === null)
    return ["Nothing has been measured yet. A node is measured each 30 s: try again in some minutes."];
  const hours = (Date.parse(run.until) - Date.parse(run.since)) / 3_600_000;
  const span = hours < 1 ? `${Math.max(1, Math.round(hours * 60))} min` : `${hours.toFixed(1)} h`;
  const first = run.moves.length
    ? `In the last ${span} it would have made ${plural(run.moves.length, "move")}, had every element been where it is now.`
    : `In the last ${span} it would have moved nothing.`;
  const held = run.held.map(({ code, seconds }) => `${codeWords(code)}: ${Math.ceil(seconds / 60)} min`);
  return held.length ? [first, `Beyond the threshold without a move: ${held.join(", ")}.`] : [first];
}

const RANGES = {
  cpu: { threshold: [20, 99], for_s: [30, 1800] },
  battery: { threshold: [1, 90], for_s: [0, 1800] },
} as const;

/** What is wrong with what somebody typed, by field; {} when it is a policy. `percent`: the threshold. */
export function policyFaults(
  kind: Policy["kind"],
  figures: { percent: number; for_s: number; moves_per_hour: number },
): Partial<Record<"threshold" | "for_s" | "moves_per_hour", string>> {
  const { threshold, for_s } = RANGES[kind];
  const outside = (value: number, [least, most]: readonly [number, number], unit: string) =>
    Number.isFinite(value) && value >= least && value <= most
      ? undefined
      : `Between ${least} and ${most}${unit}.`;
  const whole = (value: number) => (Number.isInteger(value) ? undefined : "A whole number.");
  const faults = {
    threshold: outside(figures.percent, threshold, " %"),
    for_s: outside(figures.for_s, for_s, " s") ?? whole(figures.for_s),
    moves_per_hour: outside(figures.moves_per_hour, [1, 100], "") ?? whole(figures.moves_per_hour),
  };
  return Object.fromEntries(Object.entries(faults).filter(([, fault]) => fault !== undefined));
}
