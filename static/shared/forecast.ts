/** What a move will take, in words, with what that is known from. Pure. */
import type { Expected, Forecast, NodeForecast } from "./types";

export type MoveWay = "standby" | "stop-and-copy";

export interface Expectation {
  /** null: nothing is prepared, all of it is the pause */
  ready: string | null;
  readyNote: string;
  pause: string;
  pauseNote: string;
}

/** A time to come: no figure that pretends to be exact. */
export function roughly(ms: number): string {
  if (ms < 100) return "less than 0.1 s";
  if (ms < 9_950) return `about ${(ms / 1000).toFixed(1)} s`;
  if (ms < 90_000) return `about ${Math.round(ms / 1000)} s`;
  return `about ${Math.round(ms / 60_000)} min`;
}

/** What the figure is the median of. */
export function basisWords({ basis, n }: Expected, name: string, node: string): string {
  const times = n === 1 ? "the last move" : `the last ${n} moves`;
  switch (basis) {
    case "group":
      return n === 1 ? `As the last time that ${name} moved.` : `By ${times} of ${name}.`;
    case "node":
      return `By ${times} to ${node}.`;
    case "pipeline":
      return `By ${times} in this pipeline.`;
    case "typical":
      return "A typical value: none was measured here yet.";
  }
}

const STARTS: Record<NodeForecast["start"], (node: string, name: string) => string> = {
  follows: (node, name) => `${node} follows already; ${name} goes on meanwhile.`,
  warm: (node, name) => `${node} fetches the state and starts a query; ${name} goes on meanwhile.`,
  cold: (node, name) =>
    `${node} runs nothing yet, and the first query of a node takes much longer to start; ${name} goes on meanwhile.`,
};

const STOPS: Record<NodeForecast["start"], (node: string) => string> = {
  follows: () => "",
  warm: () => "",
  cold: (node) => `${node} runs nothing yet, and the first query of a node takes much longer to start. `,
};

/** null: nothing is known of that node. */
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
