/** What a move costs and changes, and what an element would have on other nodes, in words. Pure. */
import { roughly, type MoveWay } from "./forecast";
import { bytes, latency, percent, plural } from "./format";
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
  const copied = copies(there, way);
  const rows = [
    { title: way === "standby" ? "Copied first" : "Copied", value: copyWords(there, cost, way) },
    ...(origin === null || !copied ? [] : [lineRow(origin, node, cost)]),
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

/** One move of several to one node. */
export interface Moving {
  origin: string;
  way: MoveWay;
  forecast: Forecast | undefined;
}

/** What all moves to a node cost together, and the CPU of both nodes after the last one; none until all of it
 * is known. */
export function totalRows(moves: readonly Moving[], node: string): CostRow[] {
  const known = moves.flatMap(({ origin, way, forecast }) => {
    const there = forecast?.nodes[node];
    return there?.cost ? [{ origin, way, there, cost: there.cost }] : [];
  });
  if (known.length === 0 || known.length < moves.length) return [];
  const copied = known.filter(({ there, way }) => copies(there, way));
  const byOrigin = new Map(
    known.map((each) => [each.origin, known.filter((of) => of.origin === each.origin)]),
  );
  return [
    { title: "Copied in all", value: copiedWords(copied) },
    ...[...new Map(copied.map((each) => [each.origin, each.cost]))].map(([origin, cost]) =>
      lineRow(origin, node, cost),
    ),
    { title: `CPU of ${node}`, value: cpuWords(together(known.map(({ cost }) => cost.cpu))) },
    ...[...byOrigin].map(([origin, of]) => ({
      title: `CPU of ${origin}`,
      value: cpuWords(together(of.map(({ cost }) => cost.origin_cpu))),
    })),
  ];
}

type Copied = { way: MoveWay; there: NodeForecast; cost: MoveCost };

function copiedWords(copied: readonly Copied[]): string {
  if (copied.length === 0) return "nothing: standbys follow there";
  const sized = copied.map((each) => ({ ...each, size: sizeOf(each.there, each.cost) }));
  const sum = sized.reduce((all, { size }) => all + (size ?? 0), 0);
  const unknown = sized.filter(({ size }) => size === null).length;
  const seconds = sized.map(({ size, cost }) => copyS(size ?? 0, cost));
  const takes = seconds.every((each) => each !== null)
    ? `, ${roughly(seconds.reduce((all, each) => all + each, 0) * 1000)}`
    : "";
  const rest = `the state of ${plural(unknown, "element")} without a checkpoint`;
  if (unknown === sized.length) return rest;
  return unknown ? `${bytes(sum)} and ${rest}` : `${bytes(sum)}${takes}`;
}

/** Each move changes a CPU by as much as it would alone. */
function together(changes: readonly Change[]): Change {
  const before = changes[0]?.before ?? null;
  if (before === null) return { before, after: null };
  const by = changes.map((change) => (change.after === null ? null : change.after - (change.before ?? 0)));
  const known = by.every((each) => each !== null);
  return {
    before,
    after: known
      ? Math.max(
          0,
          by.reduce((all, each) => all + each, before),
        )
      : null,
  };
}

const copies = (there: NodeForecast, way: MoveWay): boolean => there.start !== "follows" || way !== "standby";

/** With stop and copy, the standby does not use the state that it has. */
const sizeOf = (there: NodeForecast, cost: MoveCost): number | null =>
  there.start === "follows" && !there.had ? there.bytes : cost.bytes;

/** null while it is not known */
function copyS(size: number, { bytes_per_s, same_site }: MoveCost): number | null {
  if (size === 0) return 0;
  return bytes_per_s && !same_site ? size / bytes_per_s : null;
}

function copyWords(there: NodeForecast, cost: MoveCost, way: MoveWay): string {
  if (!copies(there, way)) return "nothing: a standby follows there";
  if (there.had) return "only what is new: its newest checkpoint is there already";
  const size = sizeOf(there, cost);
  if (size === null) return "its state; there is no checkpoint of it yet";
  const takes = copyS(size, cost);
  return takes === null ? bytes(size) : `${bytes(size)}, ${roughly(takes * 1000)}`;
}

/** The line over which the state is copied. */
function lineRow(origin: string, node: string, { same_site, bytes_per_s, latency_ms }: MoveCost): CostRow {
  const words = same_site
    ? ["within the site"]
    : [
        bytes_per_s ? `${bytes(bytes_per_s)}/s` : "speed not known",
        ...(latency_ms === null ? [] : [`${latency(latency_ms)} one way`]),
      ];
  return { title: "Line", value: `${origin} to ${node}, ${words.join(", ")}` };
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
