import type { ClusterNode, Handover, LiveElement, Phase, ReplicaNote } from "../types";

export const T0 = Date.parse("2026-11-20T12:00:00Z");

export function handover(change: Partial<Handover> = {}): Handover {
  return {
    id: "h1",
    pipeline: "machine-power",
    deployment: "d",
    checkpoint_seq: null,
    element: "power",
    group: "power",
    kind: "migration",
    strategy: "standby",
    origin: "edge-a",
    target: "edge-b",
    phase: "PENDING",
    outcome: null,
    message: "",
    code: "",
    timeline: [],
    gap_ms: null,
    pause: null,
    measured: {},
    begun: { start: "warm", bytes: null, had: false },
    round_trips: null,
    bytes_copied: 0,
    created_at: new Date(T0).toISOString(),
    created_by: "ada",
    reason: "",
    ended_at: null,
    cancellable: true,
    cancel_requested: false,
    ...change,
  };
}

/** An entry from `from_s` to `to_s` after the order; without `to_s` it still runs. */
export function phase(name: string, from_s: number, to_s: number | null, more: Partial<Phase> = {}): Phase {
  return {
    phase: name,
    start_ms: T0 + from_s * 1000,
    end_ms: to_s === null ? null : T0 + to_s * 1000,
    bytes: 0,
    note: "",
    ...more,
  };
}

export function node(name: string, change: Partial<ClusterNode> = {}): ClusterNode {
  return {
    name,
    up: true,
    heard: true,
    ready: true,
    cordoned: false,
    draining: false,
    draining_since: null,
    drain: null,
    drain_blocked: null,
    leaving_until: null,
    maintenance_until: null,
    url: "",
    version: "",
    version_wanted: "",
    enrolled_at: new Date(T0).toISOString(),
    cores: 2,
    site: "",
    last_seen_at: new Date(T0).toISOString(),
    silent_at: null,
    alerts: [],
    load: null,
    remove: { allowed: true, reason: null, note: null },
    elements: [],
    ...change,
  };
}

export function replica(change: Partial<ReplicaNote> = {}): ReplicaNote {
  return {
    node: "edge-b",
    role: "standby",
    phase: "following",
    epoch: 3,
    seq: 40,
    behind: 0,
    armed: null,
    ...change,
  };
}

export function element(change: Partial<LiveElement> = {}): LiveElement {
  return {
    id: "power",
    type: "window-aggregate",
    title: "power",
    group: "power",
    group_title: "power",
    status: "running",
    node: "edge-a",
    epoch: 3,
    seq: 40,
    rows_in_per_s: null,
    rows_out_per_s: null,
    bytes_out_per_s: 0,
    rows_in_total: 0,
    rows_out_total: 0,
    dead_letters_total: 0,
    dead_letters_open: 0,
    left_out_total: 0,
    connector: null,
    lag_rows: null,
    lag_unknown: null,
    last_row_at: null,
    next_row_due_at: null,
    owner_since: null,
    resumed_at: null,
    heard: true,
    batch_ms_p50: null,
    batch_ms_p95: null,
    batch_ms_p99: null,
    latency_ms_p50: null,
    latency_ms_p95: null,
    latency_ms_p99: null,
    state_bytes: 1_200_000,
    state_keys: 500,
    latency_ms_target: 500,
    cost: null,
    checkpoint: null,
    paused: false,
    ended: false,
    follow: "coalesced",
    follow_note: "",
    by_clock: false,
    standby: null,
    error: null,
    replicas: [replica({ node: "edge-a", role: "owner", phase: "owning" })],
    handover: null,
    user: null,
    alarm: null,
    actions: {},
    ...change,
  };
}
