/** What a handover cost, in words: the pause, what was copied, and what each was computed from. Pure. */
import { bytes, millis } from "./format";
import type { Handover } from "./types";

export interface Told {
  value: string;
  /** what it was computed from, or why there is none */
  why: string;
  /** a figure, and not a word in place of one */
  known: boolean;
}

const word = (value: string, why: string): Told => ({ value, why, known: false });

export function pauseTold(handover: Handover): Told {
  const { outcome, pause, gap_ms } = handover;
  const origin = handover.origin || "the old owner";
  if (outcome === null)
    return word("not yet", "It is measured when the new owner has written its first output.");
  if (outcome !== "done")
    return word("not measured", "The move did not end as ordered, so nothing was measured.");
  if (!pause && gap_ms !== null)
    return {
      value: `at most ${millis(gap_ms)}`,
      why: `From the last output of ${origin} to the first of ${handover.target}. How long it usually takes between two outputs was not recorded.`,
      known: true,
    };
  if (!pause)
    return word(
      "no input",
      `There was nothing to process on ${handover.target} at first, so nothing could pause.`,
    );
  const { ms, usual_ms, by, between_ms } = pause;
  return {
    value: usual_ms === null ? `at most ${millis(ms)}` : ms === 0 ? "none" : millis(ms),
    why: [
      by === "outputs"
        ? `From the last output of ${origin} to the first of ${handover.target} it took ${millis(between_ms)}.`
        : `It writes too seldom to measure this by its outputs, so its commits were used: from the last commit of ${origin} to the first of ${handover.target} it took ${millis(between_ms)}.`,
      usual_ms === null
        ? "How long it usually takes is not known: there were too few before."
        : `Usually it takes ${millis(usual_ms)} from one to the next, which does not count as a pause.`,
    ].join(" "),
    known: true,
  };
}

export function copiedTold(handover: Handover): Told {
  const { bytes_copied, outcome, begun, target, strategy } = handover;
  if (bytes_copied)
    return {
      value: bytes(bytes_copied),
      why: `The compressed size that was sent. What ${target} had already was not copied again.`,
      known: true,
    };
  if (begun.start === "follows" || strategy === "hot-standby")
    return word("nothing", `${target} followed as a standby already, so it had the whole state.`);
  if (outcome === null) return word("nothing yet", "");
  if (begun.had)
    return word(
      "nothing new",
      `${target} keeps copies of its checkpoints, so it had the state already${begun.bytes ? ` (${bytes(begun.bytes)})` : ""}.`,
    );
  if (begun.bytes === null) return word("nothing", "There was no checkpoint to copy yet.");
  return word("nothing new", `${target} had the state already.`);
}

/** The raw figures that the pause was computed from, for who wants them. */
export function measuredRows(handover: Handover): [string, string][] {
  const { measured } = handover;
  const between = (last: number | null | undefined, first: number | null | undefined) =>
    last == null || first == null ? null : first - last;
  const rows: [string, number | null | undefined][] = [
    ["From the last output before to the first output after", handover.gap_ms],
    ["Usual time between two outputs", measured?.usual_output_ms],
    [
      "From the last commit before to the first commit after",
      between(measured?.last_commit_at_ms, measured?.first_commit_at_ms),
    ],
    ["Usual time between two commits", measured?.usual_commit_ms],
  ];
  return rows.map(([name, ms]) => [name, ms == null ? "not known" : millis(ms)]);
}
