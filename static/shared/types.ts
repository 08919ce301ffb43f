/** Shapes of /api/v1, as the server gives them. */

export type Status =
  | "running"
  | "paused"
  | "deploying"
  | "moving"
  | "lagging"
  | "failed"
  | "stopped"
  | "silent"
  | "unheard"
  | "ended"
  | "view"
  | "draft"
  | "undeploying"
  | "attention"
  | "standby";

export type Role = "viewer" | "operator" | "editor" | "admin";

export interface DocElement {
  id: string;
  type: string;
  title?: string | null;
  params?: Record<string, unknown>;
  inputs?: Record<string, string>;
  node?: string | null;
  ui?: { x: number; y: number } | null;
}

export interface DocGroup {
  id: string;
  elements: string[];
  title?: string | null;
}

export interface PipelineDocument {
  apiVersion: string;
  kind: string;
  metadata: { name: string; [more: string]: unknown };
  spec: { elements: DocElement[]; groups?: DocGroup[] };
}

export interface Fault {
  element: string | null;
  path: string;
  message: string;
  code?: string;
  /** what people call the element, and the field of its form */
  title?: string;
  place?: string;
}

export interface SchemaField {
  name: string;
  type: string;
  unit?: string | null;
}

export interface StreamSchema {
  fields: SchemaField[];
  key?: string | null;
}

export interface Validation {
  faults: Fault[];
  schemas: Record<string, StreamSchema>;
}

export interface Port {
  name: string;
  description?: string;
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type JsonSchema = { [keyword: string]: any };

/** How a standby can follow an element; `none`: it cannot. */
export type Follow = "exact" | "coalesced" | "none";

export interface Operator {
  type: string;
  title: string;
  summary: string;
  category: string;
  icon: string;
  inputs: Port[];
  outputs: Port[];
  params_schema: JsonSchema;
  docs: string;
  example: Record<string, unknown>;
  stateful: boolean;
  follow: Follow;
  /** with other parameters or input types it may be another one */
  follow_depends: boolean;
}

export interface PipelineItem {
  name: string;
  revision: number;
  status: Status;
  deployed_version: number | null;
  deployment: string | null;
  differs: boolean;
  /** the last change of what runs, if that failed: deploying tries it again */
  upgrade_failed?: { message: string; at: string | null } | null;
  /** what runs on another node than the draft pins it to */
  elsewhere?: { element: string; pinned: string; node: string }[];
  updated_at: string;
  updated_by: string | null;
  elements?: number;
}

export interface Pipeline extends PipelineItem {
  document: PipelineDocument;
}

/** A draft as it was deployed, or saved. */
export interface VersionItem {
  number: number;
  note: string;
  created_at: string;
  created_by: string | null;
}

export interface PipelineVersion extends VersionItem {
  document: PipelineDocument;
}

export interface Allowed {
  allowed: boolean;
  reason: string | null;
  /** what to know before one does it */
  note?: string | null;
}

export interface ElementError {
  message: string;
  safe: string;
  next: string;
  traceback: string | null;
  at: string | null;
}

export interface CheckpointNote {
  seq: number;
  at: string | null;
  bytes: number | null;
  where: string[] | string | null;
}

export interface ReplicaNote {
  node: string;
  role: string;
  phase: string;
  epoch: number;
  seq: number;
  /** committed batches that a standby has still to follow */
  behind: number;
  /** id of the handover for which it has armed itself */
  armed: string | null;
}

/** The standby that somebody wants, else the one that stays for a while after a move. */
export interface StandbyNote {
  node: string;
  behind: number | null;
  armed: boolean;
  wanted: boolean;
}

export type ElementAction =
  "migrate" | "restore" | "pause" | "resume" | "checkpoint" | "keep_standby" | "drop_standby" | "rewind";

export interface LiveElement {
  id: string;
  type: string;
  /** what people call it, and the group that it runs in */
  title: string;
  group: string | null;
  group_title: string;
  status: Status;
  node: string | null;
  epoch: number | null;
  seq: number | null;
  // rates, lag and times are null while its node is not heard
  rows_in_per_s: number | null;
  rows_out_per_s: number | null;
  rows_in_total: number | null;
  rows_out_total: number | null;
  dead_letters_total: number | null;
  lag_rows: number | null;
  batch_ms_p50: number | null;
  batch_ms_p95: number | null;
  batch_ms_p99: number | null;
  latency_ms_p50: number | null;
  latency_ms_p95: number | null;
  latency_ms_p99: number | null;
  state_bytes: number | null;
  checkpoint: CheckpointNote | null;
  paused: boolean;
  ended: boolean;
  follow: Follow;
  /** what `follow` means for it, in one sentence */
  follow_note: string;
  standby: StandbyNote | null;
  error: ElementError | null;
  replicas: ReplicaNote[];
  handover: string | null;
  actions: Partial<Record<ElementAction, Allowed>>;
}

export interface NodeLoad {
  cpu_ratio: number;
  memory_bytes: number;
  memory_total_bytes: number;
  memory_ratio: number;
  disk_free_bytes: number;
  disk_ratio: number;
  battery_ratio: number | null;
  on_battery: boolean | null;
}

export interface ClusterNode {
  name: string;
  up: boolean;
  /** false: control hears nobody, so that a node is not up says nothing about it */
  heard: boolean;
  ready: boolean;
  cordoned: boolean;
  /** all that it runs is moved away, one group after another, until it is empty or uncordoned */
  draining: boolean;
  /** how far its drain has come, in groups; null: it is not drained */
  drain: {
    moved: number;
    total: number;
    moving: { pipeline: string; element: string; target: string } | null;
  } | null;
  /** which groups cannot leave now, and why; null: none */
  drain_blocked: string | null;
  url: string;
  version: string;
  cores: number;
  labels: Record<string, string> | null;
  last_seen_at: string | null;
  /** when it was found silent; null: it is heard, or was stopped */
  silent_at: string | null;
  /** what it says is wrong with itself now */
  alerts: { message: string; since: string }[];
  load: Partial<NodeLoad> | null;
  elements: { pipeline: string; element: string; title: string; role: string }[];
  remove: Allowed;
}

export interface Phase {
  phase: string;
  start_ms: number;
  end_ms: number | null;
  bytes?: number | null;
  note?: string | null;
  /** WARM: committed batches that the target has still to follow */
  behind?: number | null;
}

export type Strategy = "standby" | "stop-and-copy" | "hot-standby" | "checkpoint" | "rewind";

/** How long the element paused: what lay between less what usually does. */
export interface HandoverPause {
  /** at most that, where `usual_ms` is null */
  ms: number;
  by: "outputs" | "commits";
  between_ms: number;
  /** null: there were too few before to tell */
  usual_ms: number | null;
}

/** By the broker's clock, ms since the epoch, and usual intervals in ms. */
export interface Measured {
  last_output_at_ms: number | null;
  first_output_at_ms: number | null;
  usual_output_ms: number | null;
  last_commit_at_ms: number | null;
  first_commit_at_ms: number | null;
  usual_commit_ms: number | null;
}

export interface Begun {
  /** its copy followed; it ran something; it ran nothing */
  start: "follows" | "warm" | "cold";
  /** of the newest checkpoint; null: there was none */
  bytes: number | null;
  /** it had a copy of that */
  had: boolean;
}

/** A median of what was measured, or a typical value. */
export interface Expected {
  ms: number;
  basis: "group" | "node" | "pipeline" | "typical";
  /** of how many moves */
  n: number;
}

/** What moving an element to a node will take; `ready` null: nothing is prepared, all of it is the pause.
 * `restore`: from the order until it runs there; null: there is no such way. */
export interface NodeForecast extends Begun {
  restore: Record<"hot-standby" | "checkpoint" | "rewind", Expected | null>;
  standby: { ready: Expected | null; pause: Expected };
  "stop-and-copy": { ready: Expected | null; pause: Expected };
}

export interface Forecast {
  nodes: Record<string, NodeForecast>;
}

export interface Handover {
  id: string;
  pipeline: string;
  element: string;
  group: string;
  kind: "migration" | "restoration";
  strategy: Strategy;
  origin: string | null;
  target: string;
  phase: string;
  outcome: "done" | "failed" | "cancelled" | null;
  message: string;
  timeline: Phase[];
  gap_ms: number | null;
  /** null: it was not measured, or nothing came to be processed */
  pause: HandoverPause | null;
  measured: Partial<Measured>;
  /** what the target had when it was ordered; null: ordered by an earlier version */
  begun: Begun | null;
  /** to the broker, from the RELEASE's commit to the first output's */
  round_trips: number | null;
  bytes_copied: number | null;
  created_at: string;
  /** null: the control side ordered it by itself */
  created_by: string | null;
  /** of one that was ordered by itself: why */
  reason: string;
  ended_at: string | null;
  cancellable: boolean;
  /** somebody asked for its end: it ends when it has not passed the cut by then */
  cancel_requested: boolean;
}

/** upgrade: another version takes over from what runs, group by group */
export type OperationKind = "deploy" | "undeploy" | "upgrade";

export interface Operation {
  id: string;
  kind: OperationKind;
  pipeline: string;
  status: "pending" | "running" | "done" | "failed";
  steps: { name: string; state: string; at: string | null }[];
  phase: string;
  phase_since: string | null;
  /** in words; empty: for nothing */
  waits_for: string;
  /** until when it waits for that; null: there is no end to it, or nothing is waited for */
  deadline: string | null;
  message: string;
  faults: Fault[];
  created_at: string;
  ended_at: string | null;
}

/** What a deployment would do with an element of a running pipeline. */
export interface DeployChange {
  element: string;
  /** "restart": it cannot keep its state, but can begin without */
  change: "unchanged" | "upgraded" | "restart" | "incompatible" | "added" | "removed";
  /** what changed, or what is in the way */
  reason: string | null;
  /** of the parameter that is in the way, below its element */
  path: string | null;
  /** of "restart": what of its state is lost */
  loses?: string | null;
  /** of a pipeline that is not deployed: where it goes; null: only the dashboard shows it, or no node can take it */
  node?: string | null;
  why?: string | null;
  /** why no node can take it */
  problem?: string | null;
  /** that may pass by itself, and a deployment waits for it */
  waits?: boolean;
}

/** What a deployment would do. */
export interface DeployPlan {
  changes: DeployChange[];
  /** an upgrade that failed is tried again, whatever changes */
  repeats: boolean;
}

export interface LogEvent {
  id?: number;
  /** null: of what is so now, without a time since when */
  at: string | null;
  severity: "info" | "warning" | "error";
  kind: string;
  pipeline: string | null;
  element: string | null;
  node: string | null;
  message: string;
  detail?: unknown;
}

export interface AuditEntry {
  id?: number;
  at: string;
  /** of the first of `times` entries that this one stands for */
  since: string;
  times: number;
  user: string | null;
  action: string;
  target: string;
  detail: unknown;
}

export interface PeekRecord {
  offset: number;
  partition: number;
  at: string | number | null;
  key: string | null;
  value: unknown;
}

/** `t`: when it was reported, ms since the epoch. A figure that is not there is unknown. */
export interface ElementPoint {
  t: number;
  rows_in_per_s?: number | null;
  rows_out_per_s?: number | null;
  lag_rows?: number | null;
  batch_ms_p50?: number | null;
  batch_ms_p95?: number | null;
  latency_ms_p50?: number | null;
  latency_ms_p95?: number | null;
  latency_ms_p99?: number | null;
  state_bytes?: number | null;
}

export interface NodePoint {
  t: number;
  cpu_ratio?: number | null;
  memory_bytes?: number | null;
  memory_ratio?: number | null;
  disk_ratio?: number | null;
  battery_ratio?: number | null;
}

export interface Template {
  name: string;
  title: string;
  description: string;
  document: PipelineDocument;
}

export interface UploadedFile {
  id: string;
  reference: string;
  name: string;
  size: number;
  sha256: string;
  created_at: string;
}

export interface Problem {
  type?: string;
  title: string;
  status: number;
  detail?: string;
  safe?: string;
  next?: string;
  faults?: Fault[];
  [more: string]: unknown;
}

export interface User {
  username: string;
  role: Role;
}
