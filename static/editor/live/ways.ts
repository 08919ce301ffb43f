/** The ways to move an element, and the places to restore it from, with their consequences. Pure. */
import { ago, bytes } from "../../shared/format";
import type { MoveWay, RestoreWay } from "../../shared/forecast";
import { behindWords } from "../../shared/handovers";
import { standbyOn } from "../../shared/replicas";
import type { LiveElement, ReplicaNote } from "../../shared/types";
import type { Choice } from "../../shared/ui/choices";
import type { CheckpointRow, CheckpointState } from "./checkpoints";

/** The two ways to move, each with its consequence; without a standby's help there is only one. */
export function waysFor(element: LiveElement, target: string | null): Choice<MoveWay>[] {
  const there = target ?? "the target";
  const here = element.node ?? "its node";
  const size = element.checkpoint?.bytes ?? element.state_bytes;
  const had = target !== null && (element.checkpoint?.where ?? []).includes(target);
  const copied = had ? "only what is new" : !size ? "its state" : `about ${bytes(size)}`;
  const why = had ? ` (${there} keeps copies of its checkpoints)` : "";
  const stop: Choice<MoveWay> = {
    value: "stop-and-copy",
    title: "Stop and copy",
    note: `It stops on ${here}, ${copied} is copied${why}, and it starts on ${there}. Its output pauses for that time.`,
  };
  if (element.follow === "none") return [stop];
  const following = target !== null && standbyOn(element, target);
  return [
    {
      value: "standby",
      title: "Live, with a standby (almost no pause)",
      tag: "default",
      note: following
        ? `${there} follows already, so nothing is copied. It takes over when it has caught up.`
        : `${there} fetches ${copied}${why} and catches up while ${here} keeps running. Then it takes over.`,
    },
    stop,
  ];
}

export type Source = "hot-standby" | "newest" | "older" | "rewind";

export const wayOf = (source: Source): RestoreWay =>
  source === "newest" || source === "older" ? "checkpoint" : source;

/** Why the checkpoints are not known; null when they are. */
export function unknownWords(state: Omit<CheckpointState, "reload">): string | null {
  if (state.loading) return "The checkpoints are being loaded.";
  return state.error && state.rows.length === 0 ? "The checkpoints could not be loaded." : null;
}

/** Why there is no checkpoint to order. */
export function goneWords(rows: readonly CheckpointRow[], picked: number | null): string {
  if (rows.length === 0) return "There is no checkpoint yet.";
  return picked === null ? "Choose a checkpoint." : "That checkpoint is no longer kept: choose another one.";
}

/** What is known about the sources, and how the dialog was opened. */
export interface Known {
  /** why the hot standby's node cannot take it now */
  hotRefused: string | null;
  /** why the list cannot be shown; null when `rows` is complete */
  unknown: string | null;
  /** the dialog was opened for one checkpoint, so any of them can be chosen */
  named: boolean;
}

/** The sources from which an element can be restored, the best first. The rewind is separate. */
export function sourcesFor(
  hot: ReplicaNote | null,
  rows: readonly CheckpointRow[],
  { hotRefused, unknown, named }: Known,
): Choice<Exclude<Source, "rewind">>[] {
  const newest = rows[0];
  return [
    {
      value: "hot-standby",
      title: hot ? `The hot standby on ${hot.node}` : "The hot standby",
      tag: hot && !hotRefused ? "default" : undefined,
      note:
        hot &&
        `It ${hot.behind === 0 ? "has caught up" : `is ${behindWords(hot.behind)}`} and takes over at once: nothing is copied.`,
      disabled: hot
        ? hotRefused
        : "No standby follows it. If you keep one, the next restoration does not have to copy anything.",
    },
    {
      value: "newest",
      title: "The newest checkpoint",
      tag: hot && !hotRefused ? undefined : "default",
      note: newest
        ? `${checkpointWords(newest)}. It is copied. The rows since then are read again, but their results are not emitted again.`
        : (unknown ??
          "There is none yet. The element reads its input from the start, but results that were committed are not emitted again."),
    },
    named
      ? {
          value: "older",
          title: "A checkpoint of the list",
          note: "The result is the same with each of them; an older one takes longer.",
        }
      : {
          value: "older",
          title: "An older checkpoint",
          note: "Use it if the newest is damaged. The result is the same, but it takes longer.",
          disabled: unknown ?? (rows.length > 1 ? null : "There is no older checkpoint."),
        },
  ];
}

/** The checkpoints that a source lets one choose from. */
export function rowsFor(
  source: Source,
  rows: readonly CheckpointRow[],
  named: boolean,
): readonly CheckpointRow[] {
  if (source === "rewind") return rows;
  if (source === "older") return named ? rows : rows.slice(1);
  return [];
}

/** The checkpoint that is picked with a source. It stays the same while newer checkpoints arrive. */
export function pickFor(listed: readonly CheckpointRow[], picked: number | null): number | null {
  return listed.some((row) => row.seq === picked) ? picked : (listed[0]?.seq ?? null);
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const checkpointWords = (row: CheckpointRow): string => `${capital(ago(row.at))}, ${bytes(row.bytes)}`;

export const REWIND: Choice<"rewind"> = {
  value: "rewind",
  title: "Rewind: go back and emit again",
  note: "The element computes again from a checkpoint. Results that were committed since then are emitted again.",
};
