/** How long a move or a restoration will take, in words, and how that is known. Pure. */
import { millis } from "./format";
import type { Expected, Forecast, NodeForecast } from "./types";

export type RestoreWay = keyof NodeForecast["restore"];

export type MoveWay = "standby" | "stop-and-copy";

export interface Expectation {
  /** null when there is nothing to prepare, so the pause is the whole time */
  ready: string | null;
  readyNote: string;
  pause: string;
  pauseNote: string;
}

/** A time in the future, rounded so that it does not look exact. */
export function roughly(ms: number): string {
  if (ms < 100) return "less than 0.1 s";
  if (ms < 9_950) return `about ${(ms / 1000).toFixed(1)} s`;
  if (ms < 90_000) return `about ${Math.round(ms / 1000)} s`;
  return `about ${Math.round(ms / 60_000)} min`;
}

interface Kind {
  one: string;
  many: string;
  /** what it did */
  past: string;
  to: string;
}

const MOVE: Kind = { one: "move", many: "moves", past: "moved", to: "to" };
export const RESTORED: Record<RestoreWay, Kind> = {
  "hot-standby": {
    one: "restoration from a standby",
    many: "restorations from a standby",
    past: "was restored from a standby",
    to: "on",
  },
  checkpoint: {
    one: "restoration from a checkpoint",
    many: "restorations from a checkpoint",
    past: "was restored from a checkpoint",
    to: "on",
  },
  rewind: { one: "rewind", many: "rewinds", past: "was rewound", to: "on" },
};

/** ", which took 18 ms to 32 ms"; empty when all took the same. */
function rangeWords({ least_ms, most_ms }: Expected): string {
  const [least, most] = [millis(least_ms), millis(most_ms)];
  return least === most ? "" : `, which took ${least} to ${most}`;
}

/** What the figure is the median of, and how far its values are apart. */
export function basisWords(expected: Expected, name: string, node: string, kind = MOVE): string {
  const { basis, n } = expected;
  const times = n === 1 ? `the last ${kind.one}` : `the last ${n} ${kind.many}`;
  const range = rangeWords(expected);
  switch (basis) {
    case "group":
      return n === 1 ? `From the last time that ${name} ${kind.past}.` : `From ${times} of ${name}${range}.`;
    case "node":
      return `From ${times} ${kind.to} ${node}${range}.`;
    case "pipeline":
      return `From ${times} in this pipeline${range}.`;
    case "typical":
      return "A typical value: nothing has been measured here yet.";
  }
}

const STARTS: Record<NodeForecast["start"], (node: string, name: string) => string> = {
  follows: (node, name) => `${node} follows already; ${name} keeps running meanwhile.`,
  warm: (node, name) => `${node} fetches the state and starts a query; ${name} keeps running meanwhile.`,
  cold: (node, name) =>
    `${node} runs nothing yet, and the first query of a node takes much longer to start; ${name} keeps running meanwhile.`,
};

const STOPS: Record<NodeForecast["start"], (node: string) => string> = {
  follows: () => "",
  warm: () => "",
  cold: (node) => `${node} runs nothing yet, and the first query of a node takes much longer to start. `,
};

/** Returns null when nothing is known about that node. */
export function expectation(
  forecast: Forecast | null | undefined,
  node: string | null,
  way: MoveWay,
  name: string,
): Expectation | null {
  const there = node === null ? undefined : forecast?.nodes[node];
  if (!there || node === null) return null;
  const { ready, pause } = there[way];
  return {
    ready: ready && roughly(ready.ms),
    readyNote: ready ? `${STARTS[there.start](node, name)} ${basisWords(ready, name, node)}` : "",
    pause: roughly(pause.ms),
    pauseNote: `${ready ? "" : STOPS[there.start](node)}${basisWords(pause, name, node)}`,
  };
}

/** The same in sentences, for a confirmation. */
export function inSentences({ ready, pause, pauseNote }: Expectation): string {
  const first = ready ? `Getting ready takes ${ready}; then output` : "Output";
  return `${first} pauses for ${pause}. ${pauseNote}`;
}

const COMES: Record<RestoreWay, (node: string) => string> = {
  "hot-standby": (node) => `${node} follows already and takes over.`,
  checkpoint: (node) =>
    `${node} fetches the checkpoint, starts a query, and reads the rows since then again.`,
  rewind: (node) => `${node} fetches the checkpoint and starts a query.`,
};

export interface ExpectRow {
  title: string;
  value: string;
  note: string;
}

const isRestoration = (way: MoveWay | RestoreWay): way is RestoreWay => way in RESTORED;

/** What a dialog shows before the order; null when nothing is known about that node. */
export function expectRows(
  forecast: Forecast | null | undefined,
  node: string | null,
  way: MoveWay | RestoreWay,
  name: string,
): ExpectRow[] | null {
  if (!isRestoration(way)) {
    const expected = expectation(forecast, node, way, name);
    if (!expected) return null;
    const { ready, readyNote, pause, pauseNote } = expected;
    return [
      {
        title: "Getting ready",
        value: ready ?? "nothing to prepare",
        note: readyNote || "It stops first, so the pause is the whole time.",
      },
      { title: "Pause", value: pause, note: pauseNote },
    ];
  }
  const there = node === null ? undefined : forecast?.nodes[node];
  const owns = there?.restore[way];
  if (!there || !owns || node === null) return null;
  const notes = [
    COMES[way](node),
    STOPS[there.start](node).trim(),
    basisWords(owns, name, node, RESTORED[way]),
  ];
  return [
    { title: `Until it runs on ${node}`, value: roughly(owns.ms), note: notes.filter(Boolean).join(" ") },
  ];
}

/** A group that leaves a node, and the forecasts for its possible targets. */
export interface Leaving {
  name: string;
  way: MoveWay;
  targets: readonly string[];
  forecast: Forecast | null;
}

interface Longest {
  name: string;
  expected: Expected;
}

function longest(leaving: readonly Leaving[], figure: "ready" | "pause"): Longest | undefined {
  return leaving
    .flatMap(({ name, way, targets, forecast }) =>
      targets.flatMap((target) => {
        const expected = forecast?.nodes[target]?.[way][figure];
        return expected ? { name, expected } : [];
      }),
    )
    .reduce<Longest | undefined>(
      (most, each) => (most && most.expected.ms >= each.expected.ms ? most : each),
      undefined,
    );
}

const atMost = (ms: number): string => (ms < 100 ? roughly(ms) : `up to ${roughly(ms)}`);

/**
 * What to expect while all groups leave, in one sentence with the longest times. Empty when nothing is
 * known. `all`: how many leave.
 */
export function leavingSentence(leaving: readonly Leaving[], all: number): string {
  const pause = longest(leaving, "pause");
  if (!pause) return "";
  const ready = longest(leaving, "ready");
  const typical = [ready, pause].some((each) => each?.expected.basis === "typical");
  const basis = typical ? " (typical values: too little has been measured here so far)" : "";
  const pauses = `for ${atMost(pause.expected.ms)}${basis}`;
  if (all === 1) {
    if (!ready) return `Its output pauses ${pauses}.`;
    return `Getting ready takes ${atMost(ready.expected.ms)} while it keeps running; then its output pauses ${pauses}.`;
  }
  const each = leaving.length < all ? `Each of the first ${leaving.length}` : "Each";
  if (!ready) return `${each} pauses ${pauses}.`;
  return `${each} gets ready while it keeps running, which takes longest for ${ready.name} (${atMost(ready.expected.ms)}); then its output pauses ${pauses}.`;
}
