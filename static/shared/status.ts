import type { LiveElement, Status } from "./types";

export type Tone = "running" | "standby" | "moving" | "lagging" | "failed" | "stopped";

const TONES: Record<string, Tone> = {
  running: "running",
  up: "running",
  done: "running",
  owner: "running",
  view: "standby",
  standby: "standby",
  deploying: "moving",
  undeploying: "moving",
  moving: "moving",
  lagging: "lagging",
  attention: "lagging",
  warning: "lagging",
  cordoned: "lagging",
  "starting up": "moving",
  failed: "failed",
  error: "failed",
  silent: "failed",
  paused: "stopped",
  stopped: "stopped",
  ended: "stopped",
  draft: "stopped",
  cancelled: "stopped",
};

const WORDS: Record<string, string> = {
  attention: "needs attention",
  view: "view",
  ended: "ended",
  silent: "node silent",
};

export const toneOf = (status: string): Tone => TONES[status] ?? "stopped";
export const wordOf = (status: Status | string): string => WORDS[status] ?? status;

/** What an element is called in sentences. */
export const nameOf = (element: Pick<LiveElement, "id" | "title">): string => element.title || element.id;
