/** What a move costs and changes, and what an element would have on other nodes, in words. Pure. */
import { roughly, type MoveWay } from "./forecast";
import { bytes, latency, percent } from "./format";
import type { Forecast, MoveCost, NodeForecast, OtherNode } from "./types";

export interface CostRow {
  title: string;
  value: string;
}

type Change = MoveCost["cpu"];

/** One line for each cost, the same lines for every node; none while nothing is known. */
export function costRows(
  forecast: Forecast | null | undefined,
  node: string | null,
  way: MoveWay,
  origin: string | null,
): CostRow[] {
  const there = node === null ? undefined : forecast?.nodes[node];
  const cost = there?.cost;
  if (!there || !cost || node === null) return [];
  const all = Object.values(forecast?.nodes ?? {}).flatMap((each) => (each.cost ? [each.cost] : []));
  const known = (way: "upstream_ms" | "downstream_ms") => all.some((each) => each[way]?.after != null);
  const rows = [
    { title: way === "standby" ? "Copied first" : "Copied", value: copyWords(there, cost, way) },
    { title: `CPU of ${node}`, value: cpuWords(cost.cpu) },
    ...(origin === null ? [] : [{ title: `CPU of ${origin}`, value: cpuWords(cost.origin_cpu) }]),
  ];
  // If no line is measured, there is nothing to say about any node.
  if (cost.upstream_ms && known("upstream_ms"))
    rows.push({ title: "From its inputs", value: wayWords(cost.upstream_ms) });
  if (cost.downstream_ms && known("downstream_ms"))
    rows.push({ title: "To its readers", value: wayWords(cost.downstream_ms) });
  return rows;
}

function copyWords(there: NodeForecast, cost: MoveCost, way: MoveWay): string {
  const { bytes_per_s, same_site } = cost;
  const follows = there.start === "follows";
  if (follows && way === "standby") return "nothing: a standby follows there";
  if (there.had) return "only what is new: its newest checkpoint is there already";
  // with stop and copy, the standby does not use the state that it has
  const size = follows ? there.bytes : cost.bytes;
  if (size === null) return "its state; there is no checkpoint of it yet";
  if (same_site) return `${bytes(size)}, within the site`;
  if (!bytes_per_s) return `${bytes(size)}, over a line of unknown speed`;
  return `${bytes(size)} at ${bytes(bytes_per_s)}/s, ${roughly((size / bytes_per_s) * 1000)}`;
}

function cpuWords({ before, after }: Change): string {
  if (before === null) return "not known";
  if (after === null) return `${percent(before)} now`;
  if (percent(after) === percent(before)) return `${percent(before)}, the same as now`;
  const much = after > 1 ? ", which is more than it has" : "";
  return `${percent(before)} now, then about ${percent(after)}${much}`;
}

function wayWords({ before, after }: Change): string {
  const words = (ms: number | null) => (ms === null ? "not known" : ms === 0 ? "same site" : latency(ms));
  return `${words(before)} now, then ${words(after)}`;
}

export const STATE_WORDS: Record<OtherNode["state"], string> = {
  standby: "a standby follows",
  backup: "newest checkpoint",
  none: "nothing",
};

/** Cores: "1.5 of 2" */
export function freeWords({ cores, cores_free }: OtherNode): string {
  if (cores_free === null) return "–";
  return `${Number(cores_free.toFixed(1))} of ${cores}`;
}

/** ms one way to the farthest neighbour, as far as known; null when nothing is known. */
export function toNeighbours({ upstream_ms, downstream_ms }: OtherNode): number | null {
  const known = [upstream_ms, downstream_ms].filter((ms) => ms !== null);
  return known.length ? Math.max(...known) : null;
}
