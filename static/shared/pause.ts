/** What a handover cost, in words: the pause, what was copied, and what each was computed from. Pure. */
import { bytes, millis } from "./format";
import type { Handover } from "./types";

export interface Told {
  value: string;
  /** what it was computed from, or why there is none */
  why: string;
  /** a figure, and not a word in place of one */
  known: boolean;
  /** what the value means, where that is not plain */
  note?: string;
}

const word = (value: string, why: string): Told => ({ value, why, known: false });

export function pauseTold(handover: Handover): Told {
  const { outcome, pause } = handover;
  const origin = handover.origin || "the old owner";
  if (outcome === null) return pauseSoFar(handover, origin);
  if (outcome !== "done")
    return word("not measured", "The move did not end as ordered, so nothing was measured.");
  if (!pause)
    return word(
      "no input",
      `There was nothing to process on ${handover.target} at first, so nothing could pause.`,
    );
  const { ms, at_most, gap_ms, waited_ms, usual_ms } = pause;
  return {
    value: at_most ? `at most ${millis(ms)}` : ms === 0 ? "none" : millis(ms),
    ...(ms === 0 && { note: "no row waited longer than usual" }),
    why: [
      `From the last batch that ${origin} wrote to the first of ${handover.target} it took ${millis(gap_ms)}.`,
      waited_ms === null
        ? "It is not known how much of that time rows waited, so all of it counts."
        : `Rows waited for ${millis(waited_ms)} of that.`,
      usual_ms === null
        ? "How long rows usually wait is not known: there were too few batches before."
        : `Rows usually wait for ${millis(usual_ms)}, which does not count as a pause.`,
    ].join(" "),
    known: true,
  };
}

/** While it is under way: whether rows wait now because of it. */
function pauseSoFar({ kind, phase, target }: Handover, origin: string): Told {
  const later = `It is measured when ${target} has written its first batch.`;
  if (kind === "restoration") return word("not yet", later);
  if (PROCESSING.has(phase))
    return word("none yet", `${origin} keeps processing until ${target} is ready. ${later}`);
  if (phase === "CUT")
    return word(
      "not yet",
      `${origin} keeps processing until it releases the element, and ${target} from then on. ${later}`,
    );
  if (phase === "FINISH") return word("being measured", later);
  return word("it pauses now", `Rows wait until ${target} has taken over. ${later}`);
}

/** The phases of a move in which the old owner still processes. */
const PROCESSING: ReadonlySet<string> = new Set(["PENDING", "PREPARE", "WARM"]);

/** In one line, without a heading: "Pause: 12 ms". */
export function pauseLine(handover: Handover): string {
  const { value, note } = pauseTold(handover);
  return `Pause: ${note ? `${value}, ${note}` : value}`;
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
  const { at_ms, last_commit_at_ms: last_ms, first_commit_at_ms: first_ms } = measured;
  const rows: [string, number | null | undefined][] = [
    ["From the last batch written before to the first one after", handover.gap_ms],
    ["Until ownership had passed", last_ms == null || at_ms == null ? null : Math.max(0, at_ms - last_ms)],
    [
      "From then to the first batch of the new owner",
      first_ms == null || at_ms == null ? null : first_ms - at_ms,
    ],
    ["How long the first batch's oldest row had waited", measured?.first_wait_ms],
    ["How long the oldest row of a batch usually waits", measured?.usual_wait_ms],
  ];
  return rows.map(([name, ms]) => [name, ms == null ? "not known" : millis(ms)]);
}
