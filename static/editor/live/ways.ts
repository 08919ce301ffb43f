/** The ways to move an element, and the places to restore it from, with their consequences. Pure. */
import { ago, bytes, millis } from "../../shared/format";
import { behindWords } from "../../shared/handovers";
import { standbyOn } from "../../shared/replicas";
import type { LiveElement, ReplicaNote } from "../../shared/types";
import type { Choice } from "../../shared/ui/choices";
import type { CheckpointRow } from "./checkpoints";

export type Way = "standby" | "stop-and-copy";

/** The two ways to move, each with its consequence; without a standby's help there is only one. */
export function waysFor(
  element: LiveElement,
  target: string | null,
  gap: (way: Way) => number | null,
): Choice<Way>[] {
  const there = target ?? "the target";
  const here = element.node ?? "its node";
  const size = element.checkpoint?.bytes ?? element.state_bytes;
  const copied = !size ? "its state" : `about ${bytes(size)}`;
  const last = (way: Way) => {
    const ms = gap(way);
    return ms === null ? "" : ` The last time the gap was ${millis(ms)}.`;
  };
  const stop: Choice<Way> = {
    value: "stop-and-copy",
    title: "Stop and copy",
    note: `It stops on ${here}, ${copied} is copied, and it starts on ${there}: output pauses meanwhile, for some seconds at least.${last("stop-and-copy")}`,
  };
  if (element.follow === "none") return [stop];
  const following = target !== null && standbyOn(element, target);
  return [
    {
      value: "standby",
      title: "Live, with a standby (almost no pause)",
      tag: "default",
      note: following
        ? `${there} follows already, so nothing is copied; it takes over when it has caught up.${last("standby")}`
        : `${there} fetches ${copied} and catches up while ${here} goes on, then takes over.${last("standby")}`,
    },
    stop,
  ];
}

export type Source = "hot-standby" | "newest" | "older" | "rewind";

/** Where an element can be restored from, the best first; the way back in time apart from these. */
export function sourcesFor(
  hot: ReplicaNote | null,
  rows: readonly CheckpointRow[],
): Choice<Exclude<Source, "rewind">>[] {
  const newest = rows[0];
  return [
    {
      value: "hot-standby",
      title: hot ? `The hot standby on ${hot.node}` : "The hot standby",
      tag: hot ? "default" : undefined,
      note:
        hot &&
        `It ${hot.behind === 0 ? "has caught up" : `is ${behindWords(hot.behind)}`} and takes over at once: nothing is copied.`,
      disabled: hot ? null : "No standby follows it. Keep one, and the next restoration takes no copy.",
    },
    {
      value: "newest",
      title: "The newest checkpoint",
      tag: hot ? undefined : "default",
      note: newest
        ? `${checkpointWords(newest)}. It is copied, and what was committed since is read again without being emitted.`
        : "There is none yet: it reads its input from the start, and what was committed is not emitted again.",
    },
    {
      value: "older",
      title: "An older checkpoint",
      note: "For when the newest is damaged. It ends at the same place, and takes longer.",
      disabled: rows.length > 1 ? null : "There is no older one.",
    },
  ];
}

export const checkpointWords = (row: CheckpointRow): string =>
  `Seq ${row.seq}, ${ago(row.at)}, ${bytes(row.bytes)}`;

export const REWIND: Choice<"rewind"> = {
  value: "rewind",
  title: "Rewind: go back and emit again",
  note: "Computes again from a checkpoint on. Outputs committed since then will be emitted again.",
};
