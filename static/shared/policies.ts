/** Policies in words: what one does, what it found, what it would have done. Pure. */
import { listed, percent, plural } from "./format";
import { momentText, type Kind, type Rule } from "./policy-rules";
import type { AttentionLine, Decision, DryRun, Policy, PolicyCode, Standing } from "./types";

export type PolicyFigures = Pick<Policy, "rule" | "moves_per_hour" | "mode">;

/** "When the CPU of a node has been above 80 % for 60 s, …" */
export function policySentence({ rule, moves_per_hour, mode }: PolicyFigures): string {
  if (rule.kind === "sites") return sitesSentence(rule, mode, moves_per_hour);
  const [when, what, where = ""] = IN_WORDS[rule.kind](rule as never);
  const closes =
    rule.kind === "maintenance"
      ? " From then until the end of the maintenance, no new elements are placed there."
      : "";
  if (mode === "advice")
    return `${when}, you are advised to move ${what.replace(/,$/, "")}${where}.${closes}`;
  return `${when}, ${what} is moved${where}, at most ${moves_per_hour} an hour.${closes}`;
}

type Of<K extends Kind> = Extract<Rule, { kind: K }>;
const lasted = (for_s: number): string => (for_s > 0 ? ` for ${for_s} s` : "");

/** When; what is moved then; where, if that is special. */
const IN_WORDS: {
  [K in Exclude<Kind, "sites">]: (rule: Of<K>) => [string, string] | [string, string, string];
} = {
  cpu: ({ threshold, for_s }) => [
    `When a node's CPU has been above ${percent(threshold)}${lasted(for_s)}`,
    "its busiest element that fits on another node",
  ],
  battery: ({ threshold, for_s }) => [
    `When a node runs on a battery that has been below ${percent(threshold)}${lasted(for_s)}`,
    "everything that it runs, the element with the least state first,",
  ],
  maintenance: (rule) => [
    `${rule.lead_minutes} min before ${rule.of === "node" ? rule.name : `each node at ${rule.name}`} must be empty (${windowWords(rule)})`,
    "everything that it runs, the element with the least state first,",
  ],
  latency: ({ pipeline, element, ms, for_s }) => [
    `When the slowest 5 % of the batches of ${element || "an element"} of ${pipeline} have taken more than ${ms} ms${lasted(for_s)}`,
    "it",
    " to a node that is nearer to its inputs, or as near and less busy",
  ],
  spread: ({ difference, for_s }) => [
    `When a node's CPU has been more than ${Math.round(difference * 100)} points above that of the least busy one${lasted(for_s)}`,
    "its busiest element that fits there",
  ],
  pack: ({ threshold, for_s }) => [
    `When everything on the least busy node has fitted on busier nodes${lasted(for_s)}, whose CPU stays under ${percent(threshold - 0.1)}`,
    "it",
    " there, one element after another",
  ],
  apart: ({ pipeline, most }) => [
    `When a node runs more than ${most ?? "half (rounded up)"} of the groups of ${pipeline}`,
    "the group with the least state",
    " to the node that runs the fewest",
  ],
  follow: ({ pipeline, element, along, for_s }) => [
    `When the user of ${element} of ${pipeline} ${for_s ? `has been at a site for ${for_s} s` : "has come to a site"}`,
    along ? "it (with the elements that read only from it, unless they are pinned)" : "it",
    " to the node that is nearest to that site, if it is more than 10 ms nearer",
  ],
};

/** Two sentences: one about a site that comes, one about a site that goes. */
function sitesSentence(
  { pipeline, for_s, gone, gone_s }: Of<"sites">,
  mode: Policy["mode"],
  most: number,
): string {
  const who = pipeline || "each pipeline whose elements are copied to each site";
  const comes = for_s > 0 ? `When a site has been there${lasted(for_s)}` : "When a site appears";
  const goes =
    gone_s > 0 ? `When no node of a site has answered${lasted(gone_s)}` : "When no node of a site answers";
  const advises = mode === "advice";
  const first = advises
    ? `${comes}, you are advised to give ${who} its copy there.`
    : `${comes}, ${who} gets its copy there, at most ${plural(most, "upgrade")} an hour.`;
  const then = {
    wait: "its copies wait for it and are not restored elsewhere.",
    "take-out": advises
      ? "you are advised to take its copies out of the pipeline; until then they wait for it."
      : "its copies are taken out of the pipeline, with the state that they keep; until then they wait for it.",
    elsewhere: advises
      ? "you are advised to restore its copies on other nodes."
      : "its copies continue on other nodes, if they do not already.",
  };
  return `${first} ${goes}, ${then[gone]}`;
}

/** "2026-11-26 02:00 to 04:00 UTC", "each Thursday 02:00 to Friday 01:00 UTC" */
function windowWords({ begins, minutes, weekly }: Of<"maintenance">): string {
  const ends = new Date(Date.parse(begins) + minutes * 60_000).toISOString();
  const [day, at] = momentText(begins).split(" ");
  const [lastDay, until] = momentText(ends).split(" ");
  const named = (iso: string) => new Date(iso).toLocaleDateString("en", { weekday: "long", timeZone: "UTC" });
  const first = weekly ? `each ${named(begins)}` : day;
  const last = lastDay === day ? "" : `${weekly ? named(ends) : lastDay} `;
  return `${first} ${at} to ${last}${until} UTC`;
}

const CODES: Record<PolicyCode, string> = {
  unknown: "not known",
  calm: "calm",
  "not-yet": "not for long enough",
  moving: "another move comes first",
  draining: "being drained already",
  empty: "nothing runs there",
  refused: "cannot move",
  resting: "resting after a move",
  "no-target": "no node can take it",
  budget: "budget used up",
  move: "to be moved",
  waits: "waiting for its site",
  copy: "to get its copies",
  "take-out": "to be taken out",
  restore: "to be restored elsewhere",
};

export const codeWords = (code: PolicyCode): string => CODES[code];

/** What a policy says now, the most urgent first. Calm nodes are left out. */
export function notable(standing: readonly Standing[]): Standing[] {
  const worth = standing.filter(({ code }) => code !== "calm" && code !== "unknown");
  return [...worth].sort((a, b) => Number(acts(b.code)) - Number(acts(a.code)));
}

/** Whether there is something to do, for the policy or for the person whom it advises. */
const acts = (code: PolicyCode): boolean => ["move", "copy", "take-out", "restore"].includes(code);

/** One sentence for a dry run, and one for what held it back. */
export function dryRunSentences(run: DryRun): string[] {
  if (run.since === null || run.until === null)
    return ["Nothing has been measured yet. Nodes are measured every 30 s: try again in a few minutes."];
  const hours = (Date.parse(run.until) - Date.parse(run.since)) / 3_600_000;
  const span = hours < 1 ? `${Math.max(1, Math.round(hours * 60))} min` : `${hours.toFixed(1)} h`;
  const first = run.acts.length
    ? `In the last ${span} it would have acted ${run.acts.length === 1 ? "once" : `${run.acts.length} times`} if every element had been where it is now.`
    : `In the last ${span} it would have done nothing.`;
  const held = run.held.map(({ code, seconds }) => `${codeWords(code)} (${Math.ceil(seconds / 60)} min)`);
  return held.length ? [first, `Reasons why it did not act: ${held.join(", ")}.`] : [first];
}

/** "Power of demo from edge-a to cloud"; the page shows the time before it. */
export function dryActWords({ code, title, pipeline, origin, target, site }: DryRun["acts"][number]): string {
  const what = title ?? `a copy of ${pipeline}${site ? ` at ${site}` : ""}`;
  if (code === "copy") return `${pipeline} gets its copies at ${site ?? ""}`;
  if (code === "take-out") return `${pipeline} loses its copies at ${site ?? ""}`;
  return code === "restore"
    ? `${what} continues on ${target ?? ""}`
    : `${what} from ${origin} to ${target ?? ""}`;
}

/** What one click does; empty when there is nothing to click. */
export function adviceOf(said: Standing): Advice {
  const { code, pipeline, element, target, site } = said;
  if (code === "move") return { pipeline, element, move_to: target ?? undefined };
  if (code === "restore") return { pipeline, element, restore_to: target ?? undefined };
  return code === "copy" || code === "take-out" ? { pipeline, site, change: code } : {};
}

/** As it is said under "Needs attention". */
export interface Advice extends Partial<
  Pick<AttentionLine, "pipeline" | "element" | "move_to" | "restore_to" | "site" | "change">
> {}

/** What was decided, or its result. */
export function doneWords({ code, handover, operation, target }: Decision): string {
  if (handover) return `${code === "restore" ? "restored on" : "moved to"} ${target ?? ""}`;
  if (operation) return code === "copy" ? "got its copies" : "was taken out";
  return codeWords(code);
}

/** What a policy of sites says when there is nothing to do. */
export function sitesNow(standing: readonly Standing[]): string {
  const pipelines = [...new Set(standing.flatMap(({ pipeline }) => pipeline ?? []))];
  return pipelines.length
    ? `Every site has its copies of ${listed(pipelines)}.`
    : "No running pipeline has elements that were copied to each site.";
}
