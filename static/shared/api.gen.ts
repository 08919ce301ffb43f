// Written by `make api-types` from webapp/*/schemas.py, webapp/monitoring/messages.py and
// pipeline_runtime/model/document.py. Do not edit: a test compares it with them.

/** The settings and secrets that a node needs to join. */
export interface Admission {
  node: string;
  version: string;
  kafka: AdmissionKafka;
  redis_url: string;
  cluster_key: string;
  central_url: string;
  checkpoint_s: number;
  checkpoint_batches: number;
  checkpoints_kept: number;
  checkpoints_hours: number;
}

export interface AdmissionKafka {
  bootstrap: string;
  security: Record<string, unknown>;
}

export interface Again {
  reading: Reading;
}

export interface Alarm {
  id: number;
  status: "raised" | "acknowledged" | "silenced" | "cleared";
  severity: "info" | "warning" | "critical";
  title: string;
  message: string;
  source: "rows" | "rule" | "channel";
  rule: string | null;
  pipeline: string | null;
  element: string | null;
  node: string | null;
  site: string | null;
  key: string | null;
  values: Record<string, unknown>;
  row: AlarmRow | null;
  count: number;
  raised_at: string;
  seen_at: string;
  cleared_at: string | null;
  acknowledged_at: string | null;
  acknowledged_by: string | null;
  silenced_until: string | null;
  silenced_by: string | null;
  note: string;
}

export interface AlarmChange {
  at: string;
  kind: "raised" | "worse" | "acknowledged" | "silenced" | "unsilenced" | "cleared";
  who: string | null;
  note: string;
  until: string | null;
}

export interface AlarmChanges {
  changed: Alarm[];
  gone: number[];
}

/** A channel without its URL: Fogline shows the URL to nobody. */
export interface AlarmChannel {
  id: number;
  name: string;
  kind: string;
  enabled: boolean;
  created_by: string | null;
  created_at: string;
  worked_at: string | null;
  failing_since: string | null;
  error: string;
  waiting: number;
}

export interface AlarmChannelChange {
  url?: string | null;
  enabled?: boolean | null;
}

export interface AlarmChannelIn {
  name: string;
  url: string;
  enabled?: boolean;
}

export interface AlarmMessage {
  id: string;
  channel: string;
  route: string | null;
  reason: "raised" | "worse" | "repeat" | "escalation" | "cleared" | "test";
  subject: string;
  alarms: number[];
  created_at: string;
  due_at: string;
  attempts: number;
  repeats: number;
  sent_at: string | null;
  given_up_at: string | null;
  error: string;
}

export interface AlarmMessages {
  messages: AlarmMessage[];
  waiting: number;
  repeats: number;
}

/** A metric that a rule may watch. */
export interface AlarmMetric {
  metric: string;
  title: string;
  unit: string;
  of: "element" | "node";
  below: boolean;
  flag: boolean;
}

export interface AlarmPage {
  alarms: Alarm[];
  before: number | null;
}

export interface AlarmRoute {
  id: number;
  name: string;
  spec: RouteSpec;
  enabled: boolean;
  created_by: string | null;
  created_at: string;
}

export interface AlarmRouteChange {
  spec?: RouteSpec | null;
  enabled?: boolean | null;
}

export interface AlarmRouteIn {
  name: string;
  spec: RouteSpec;
  enabled?: boolean;
}

/** The row that raised an alarm. */
export interface AlarmRow {
  stream: string;
  partition: number;
  offset: number;
}

export interface AlarmRule {
  id: number;
  name: string;
  rule: MetricRule;
  enabled: boolean;
  open: number;
  created_by: string | null;
  created_at: string;
}

export interface AlarmRuleChange {
  rule?: MetricRule | null;
  enabled?: boolean | null;
}

export interface AlarmRuleIn {
  name: string;
  rule: MetricRule;
  enabled?: boolean;
}

export interface AlarmWithHistory {
  id: number;
  status: "raised" | "acknowledged" | "silenced" | "cleared";
  severity: "info" | "warning" | "critical";
  title: string;
  message: string;
  source: "rows" | "rule" | "channel";
  rule: string | null;
  pipeline: string | null;
  element: string | null;
  node: string | null;
  site: string | null;
  key: string | null;
  values: Record<string, unknown>;
  row: AlarmRow | null;
  count: number;
  raised_at: string;
  seen_at: string;
  cleared_at: string | null;
  acknowledged_at: string | null;
  acknowledged_by: string | null;
  silenced_until: string | null;
  silenced_by: string | null;
  note: string;
  changes: AlarmChange[];
}

/** What is different among the open alarms. */
export interface AlarmsMessage {
  type: "alarms";
  data: AlarmChanges;
}

export interface Allowed {
  allowed: boolean;
  reason: string | null;
  note: string | null;
}

export interface Annotation {
  at: string;
  text: string;
  by?: string;
}

/** No node runs more than `most` groups of `pipeline`. Without `most`, half of them, rounded up. */
export interface Apart {
  kind: "apart";
  pipeline: string;
  most?: number | null;
}

export interface AttentionLine {
  at: string | null;
  severity: "info" | "warning" | "error";
  kind: string;
  pipeline: string | null;
  element: string | null;
  node: string | null;
  message: string;
  move_to?: string;
  restore_to?: string;
  site?: string;
  change?: "copy" | "take-out";
  alarm?: number;
}

export interface AuditEntry {
  id: number;
  at: string;
  since: string;
  times: number;
  user: string;
  action: string;
  target: string;
  detail: unknown;
}

/** A batch that was committed around a change of owner. */
export interface Batch {
  at_ms: number;
  node: string;
  rows: number;
  wait_ms: number | null;
}

/** A node runs on a battery that is below `threshold` (0..1) for `for_s` without a break. */
export interface BatteryBelow {
  kind: "battery";
  threshold: number;
  for_s: number;
}

/** A figure before and after the move. It is null if it is not known. */
export interface BeforeAfter {
  before: number | null;
  after: number | null;
}

export interface Begun {
  start: "follows" | "warm" | "cold";
  bytes: number | null;
  had: boolean;
}

export interface BroughtBack {
  handovers: Handover[];
  elements: string[];
  refused: NotBroughtBack[];
}

export interface CellDifference {
  name: string;
  expected: unknown;
  found: unknown;
}

export interface Change {
  path: string;
  from: unknown;
  to: unknown;
}

export interface ChangedElement {
  id: string;
  changes: Change[];
}

export interface ChartTile {
  id: string;
  title?: string;
  x: number;
  y: number;
  w: number;
  h: number;
  low?: number | null;
  high?: number | null;
  limit_of?: LimitOf | null;
  kind: "chart";
  series: Series[];
  range_s?: number;
  annotations?: Annotation[];
}

export interface Checkpoint {
  seq: number;
  at: string | null;
  bytes: number | null;
  where: string[];
  epoch: number | null;
  bytes_new: number | null;
  node: string | null;
}

export interface CheckpointNote {
  seq: number;
  at: string | null;
  bytes: number | null;
  where: string[];
}

export interface Checkpoints {
  checkpoints: Checkpoint[];
}

/**
 * One answer to a question. `changes` maps places in the reading, such as `columns.2.thousands`, to their
 * new values.
 */
export interface Choice {
  title: string;
  example?: string;
  changes: Record<string, JsonValue>;
}

export interface Chosen {
  at: number;
  title?: string;
  replaces?: number | null;
}

/** One column of the table. Where a field is None, the value of the whole file's reading holds. */
export interface ColumnReading {
  source: number | string;
  name: string;
  type: FieldType;
  unit?: string | null;
  decimal?: "." | "," | null;
  thousands?: "" | "." | "," | " " | "'" | null;
  missing?: string[] | null;
  beside?: string;
  format?: string | null;
}

export interface ColumnReport {
  name: string;
  read: number;
  missing: number;
  unreadable: number;
  first_unreadable?: [number, string] | null;
}

export interface ConnectionItem {
  name: string;
  kind: string;
  title: string;
  fields: Record<string, unknown> | null;
  secrets: string[];
  secrets_lost: boolean;
  simulated: boolean;
  changed_at: string | null;
  changed_by: string | null;
  used_by: string[];
}

export interface ConnectionKind {
  kind: string;
  title: string;
  form: Record<string, unknown>;
}

export interface ConnectionTested {
  node: string;
  works: boolean;
  words: string;
  rows: Record<string, unknown>[];
  found: FoundThing[];
  offer: OfferedValue | null;
}

/**
 * The connector of an element. Its process counts rows from its start, and gaps from the element's
 * deployment.
 */
export interface ConnectorNote {
  state: "starting" | "connected" | "failing";
  why: string;
  since: string | null;
  rows_total: number;
  refused_total: number;
  gaps_total: number;
  gap_rows_total: number;
  spool_bytes: number;
  gap_at: string | null;
  trouble: string | null;
}

/** A document in which elements have copies at sites. */
export interface Copies {
  document: PipelineDocument;
  elements: string[];
}

export interface CopiesChange {
  site: string;
  change: "copy" | "take-out";
}

export interface CopiesIn {
  document: Record<string, unknown>;
  elements: string[];
  sites: string[];
}

/** Which letters are counted. */
export interface CountedOf {
  reason: string;
  text?: string;
}

/** A node's CPU is above `threshold` (0..1) for `for_s` without a break. */
export interface CpuAbove {
  threshold: number;
  for_s: number;
  kind: "cpu";
}

/**
 * The rows that a chart needs, oldest first. For each pixel and curve these are the least, the greatest
 * and the last row.
 */
export interface Curve {
  records: PeekedRecord[];
  stream: string;
  rows: number;
  left_out: number;
  cursor: string;
}

export interface CurveAnswer {
  curve: Curve | null;
  problem: Record<string, unknown> | null;
}

/** What a chart draws. */
export interface CurveColumns {
  columns?: string[];
  by?: string | null;
  marks?: string[];
}

/** Which rows a chart draws, and on how many pixels. */
export interface CurveSpan {
  pixels?: number;
  window_ms?: number;
  from_ms?: number | null;
  to_ms?: number | null;
  after?: string;
}

/** One series of a chart, and which of its rows. */
export interface CurveWanted {
  pixels?: number;
  window_ms?: number;
  from_ms?: number | null;
  to_ms?: number | null;
  after?: string;
  tile: string;
  series?: number;
}

export interface DeadLetters {
  records: PeekedRecord[];
  groups: LetterGroup[];
  groups_left_out: number;
  looked: number;
  more: boolean;
  topics: Record<string, string>;
  replay: Allowed;
  orders: LetterOrder[];
}

export interface Decision {
  id: number;
  at: string;
  policy: string;
  node: string;
  site: string | null;
  pipeline: string | null;
  element: string | null;
  title: string | null;
  code: "unknown" | "calm" | "not-yet" | "moving" | "draining" | "empty" | "refused" | "resting" | "no-target" | "budget" | "move" | "waits" | "copy" | "take-out" | "restore";
  target: string | null;
  why: string;
  handover: string | null;
  operation: string | null;
}

export interface Deploy {
  version?: number | null;
  placement?: Record<string, string>;
  revision?: number | null;
  dry_run?: boolean;
  restart?: string[];
  check_expected?: boolean;
}

/** What a deployment would do with an element. */
export interface DeployChange {
  element: string;
  title?: string;
  change: "unchanged" | "retuned" | "upgraded" | "restart" | "incompatible" | "added" | "removed";
  reason?: string | null;
  path?: string | null;
  loses?: string | null;
  instead?: string | null;
  view?: boolean;
  node?: string | null;
  why?: string | null;
  problem?: string | null;
  warning?: string | null;
  waits?: boolean;
}

export interface DeployPlan {
  changes: DeployChange[];
  repeats: boolean;
}

/**
 * How a file can be read. `notes` are the guesses in words, one sentence each. While there are questions,
 * nothing is imported.
 */
export interface Detection {
  reading: Reading;
  notes?: string[];
  questions?: Question[];
  members?: string[];
  sheets?: string[];
  arrays?: string[];
}

/** Says which element this one is a copy of, at the site where it runs (`planning/copies.py`). */
export interface DocCopyOf {
  part: string;
  element: string;
  params?: Record<string, unknown>;
}

/** One step: a source, a processor, a sink or a view. */
export interface DocElement {
  id: string;
  type: string;
  title?: string | null;
  params?: Record<string, unknown>;
  inputs?: Record<string, string>;
  node?: string | null;
  site?: string | null;
  apart?: string[] | null;
  latency_ms?: number | null;
  copy_of?: DocCopyOf | null;
  ui?: DocElementUi | null;
}

/** Where the editor draws an element, and what it says about it. The runtime ignores it. */
export interface DocElementUi {
  x?: number | null;
  y?: number | null;
  replace?: boolean | null;
}

/** Elements that run, move and are restored together. */
export interface DocGroup {
  id: string;
  elements: string[];
  title?: string | null;
  ui?: Record<string, unknown> | null;
}

/** The id of a pipeline, and what people call it. */
export interface DocMetadata {
  name: string;
  title?: string | null;
  description?: string | null;
}

/**
 * What people write or frame on the canvas. Nothing runs otherwise because of it.
 *
 * Lengths and places are those of the canvas. What lies in a frame moves with it.
 */
export interface DocNote {
  id: string;
  kind: "note" | "frame";
  text?: string;
  colour?: "grey" | "blue" | "orange" | "green" | "pink" | "yellow";
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface DocSpec {
  elements?: DocElement[];
  groups?: DocGroup[];
  notes?: DocNote[];
}

export interface Draft {
  document: Record<string, unknown>;
}

export interface DraftIn {
  document?: Record<string, unknown> | null;
}

/** The pipeline of the same name that this Fogline already has. */
export interface DraftThere {
  title: string;
  revision: number;
  same: boolean;
}

/** The progress of a drain, in numbers of groups. */
export interface DrainProgress {
  moved: number;
  total: number;
  moving: Moving | null;
}

/** A move, or a change to a pipeline's copies at a site. */
export interface DryAct {
  at: string;
  code: "unknown" | "calm" | "not-yet" | "moving" | "draining" | "empty" | "refused" | "resting" | "no-target" | "budget" | "move" | "waits" | "copy" | "take-out" | "restore";
  pipeline: string;
  element: string | null;
  title: string | null;
  origin: string;
  target: string | null;
  site: string | null;
  why: string;
}

/** The acts that a policy would have ordered, by the measurements of the last day. */
export interface DryRun {
  since: string | null;
  until: string | null;
  acts: DryAct[];
  held: Held[];
}

export interface DryRunIn {
  rule: CpuAbove | BatteryBelow | Maintenance | LatencyAbove | Spread | Pack | Apart | FollowUser | Sites;
  moves_per_hour?: number;
}

/** The share of its node's CPU that the element's group took in the newest half minute. */
export interface ElementCost {
  cpu_cores: number;
  batches_per_s: number;
  rows_per_s: number;
  wait_ms_max: number | null;
}

export interface ElementError {
  code: string | null;
  message: string | null;
  safe: string | null;
  next: string | null;
  traceback: string | null;
  at: string | null;
  ways: WayOn[];
}

export interface ElementHistory {
  points: ElementPoint[];
}

/** The figures of an element at one time. A missing figure is not known. */
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

export interface ElementPreview {
  node: string;
  ms: number;
  trouble: PreviewTrouble | null;
  newest: boolean;
  inputs: PreviewStreamOut[];
  output: PreviewStreamOut | null;
  letters: PreviewLetterOut[];
  letters_count: number;
  read: number;
  whole: boolean;
  lost: PreviewLoss[];
  pinned: PinnedRows | null;
}

export interface ElementsMessage {
  type: "elements";
  pipeline: string;
  data: LiveElement[];
}

/** An element that does not run on its home node. */
export interface Elsewhere {
  element: string;
  home: string;
  pinned: boolean;
  node: string;
  why: string;
  at: string | null;
}

export interface Enrolment {
  name: string;
  version: string;
  cores: number;
  url: string;
  token?: string | null;
}

export interface EventMessage {
  type: "event";
  data: LogEvent;
}

export interface ExpectIn {
  document?: Record<string, unknown> | null;
  node?: string | null;
}

/** An expected time: the median of earlier moves, or a typical value. */
export interface Expected {
  ms: number;
  least_ms: number;
  most_ms: number;
  basis: "group" | "node" | "pipeline" | "typical";
  n: number;
}

/** Whether an element makes of its pinned rows what is expected. */
export interface ExpectedCheck {
  element: string;
  title: string;
  columns: string[];
  differences: RowDifference[];
  letters_expected: number;
  letters_found: number;
  trouble: string | null;
}

export interface Fault {
  element: string | null;
  path: string;
  message: string;
  code?: string;
  title?: string;
  place?: string;
  instead?: Instead[];
}

/** A column of a stream. */
export interface Field {
  name: string;
  type: FieldType;
  unit?: string | null;
}

/** The type of a column. */
export type FieldType = "integer" | "number" | "string" | "boolean" | "timestamp";

export interface FieldsIn {
  fields: Record<string, unknown>;
}

export interface FigureState {
  at: string | null;
  value: number | string | boolean | null;
  every_s: number | null;
  points: [number, number][];
}

/** The newest value of a column. */
export interface FigureTile {
  id: string;
  title?: string;
  x: number;
  y: number;
  w: number;
  h: number;
  low?: number | null;
  high?: number | null;
  limit_of?: LimitOf | null;
  kind: "figure";
  series: Series;
  unit?: string;
  decimals?: number | null;
}

export interface FileColumn {
  name: string;
  type: string;
  unit: string | null;
}

export interface FileDetail {
  id: string;
  reference: string;
  name: string;
  size: number;
  sha256: string;
  kind: "table" | "model";
  state: "looking" | "asks" | "importing" | "imported" | "failed" | "cancelled" | "model";
  progress: FileProgress | null;
  error: FileTrouble | null;
  columns: FileColumn[];
  rows: number | null;
  dead_rows: number | null;
  unread_cells: number | null;
  has_time: boolean | null;
  table_bytes: number;
  uses: FileUse[];
  created_at: string;
  created_by: string | null;
  detection: Detection | null;
  reading: Reading | null;
  report: Report | null;
}

export interface FilePreview {
  preview: Preview;
  detection: Detection | null;
  encodings: Record<string, string>;
}

export interface FileProgress {
  bytes_done: number;
  bytes_total: number;
  rows: number;
}

/** Why Fogline could not look at a file, or could not import it. */
export interface FileTrouble {
  what: string;
  where: string | null;
  next: string;
}

export interface FileUse {
  pipeline: string;
  where: "draft" | "version" | "deployment" | "template";
  version: number | null;
}

/**
 * An element of `pipeline` runs on the node that is nearest to where its user has been for `for_s`. With
 * `along`, so do unpinned elements that read only from it, or from elements that go along.
 */
export interface FollowUser {
  kind: "follow";
  pipeline: string;
  element: string;
  along: boolean;
  for_s: number;
}

export interface Forecast {
  nodes: Record<string, NodeForecast>;
}

/** Earlier moves of the same group by the same strategy that succeeded, newest first. */
export interface Former {
  moves: FormerMove[];
  pause_ms: MoveSpread | null;
  ready_ms: MoveSpread | null;
  bytes: MoveSpread | null;
}

export interface FormerMove {
  id: string;
  ended_at: string;
  origin: string;
  target: string;
  pause_ms: number | null;
  ready_ms: number | null;
  bytes: number;
}

/** Something that a system has and an element may use: a topic, a table, a node of a tree. */
export interface Found {
  path: string;
  title: string;
  type?: string;
  unit?: string;
  inner?: boolean;
  usable?: boolean;
  holds?: FieldType | null;
  value?: string | number | boolean | null;
  within?: string[];
  parts?: FoundPart[];
}

/** A part of the system that becomes a column: a field of a message, or a column of a table. */
export interface FoundPart {
  name: string;
  type: FieldType | null;
  key: boolean;
}

export interface FoundThing {
  path: string;
  title: string;
  type: string;
  unit: string;
  inner: boolean;
  usable: boolean;
  holds: FieldType | null;
  value: string | number | boolean | null;
  within: string[];
  parts: FoundPart[];
}

export interface FromTemplate {
  name?: string | null;
  title?: string;
  mark?: boolean;
}

/** A matrix that a person entered. It is empty if nobody entered one. */
export interface GivenMatrix {
  sites: string[];
  rows: number[][];
  unknown: string[];
}

export interface GoOn {
  way: string;
}

/** The expected fate of a group if its node died now. */
export interface GroupAfter {
  pipeline: string;
  element: string;
  titles: string[];
  target: string | null;
  way: "hot-standby" | "checkpoint" | null;
  expected: Expected | null;
  bytes: number | null;
  by_itself: boolean;
  reason: string | null;
}

export interface GroupsChange {
  from: unknown[];
  to: unknown[];
}

export interface Handover {
  id: string;
  pipeline: string;
  deployment: string;
  element: string;
  group: string;
  kind: "migration" | "restoration";
  strategy: "standby" | "stop-and-copy" | "hot-standby" | "checkpoint" | "rewind";
  origin: string;
  target: string;
  checkpoint_seq: number | null;
  phase: string;
  outcome: "done" | "failed" | "cancelled" | null;
  message: string;
  code: string;
  timeline: PhaseEntry[];
  gap_ms: number | null;
  measured: Measured;
  round_trips: number | null;
  reason: string;
  bytes_copied: number;
  cancel_requested: boolean;
  pause: HandoverPause | null;
  begun: Begun;
  created_at: string;
  created_by: string | null;
  ended_at: string | null;
  cancellable: boolean;
}

export interface HandoverDetails {
  written: Written | null;
  ready_ms: number | null;
  former: Former;
}

export interface HandoverMessage {
  type: "handover";
  data: Handover;
}

/** How long the element paused, and the times from which Fogline computed this pause. */
export interface HandoverPause {
  ms: number;
  at_most: boolean;
  gap_ms: number;
  waited_ms: number | null;
  usual_ms: number | null;
}

export interface Held {
  code: "unknown" | "calm" | "not-yet" | "moving" | "draining" | "empty" | "refused" | "resting" | "no-target" | "budget" | "move" | "waits" | "copy" | "take-out" | "restore";
  seconds: number;
}

export interface HostedElement {
  pipeline: string;
  element: string;
  title: string;
  group: string;
  role: string;
}

/**
 * How to import a file. Without a reading, it is read as it was detected, with these answers. A reading
 * is complete: the answers say only what is not to be asked again.
 */
export interface ImportIn {
  reading?: Reading | null;
  /** question's id -> number of the choice, from 0 */
  answers?: Record<string, number>;
}

export interface ImportedPipeline {
  name: string;
  title: string;
  revision: number;
  version: number | null;
}

export interface Instead {
  column: string;
  value: string;
}

export interface Invitation {
  name: string;
}

export interface Invited {
  name: string;
  token: string;
  expires_at: string;
  command: string;
  version: string;
  url: string;
  kafka: string;
  central_url: string;
  warnings: string[];
}

export type JsonValue = unknown;

export interface Jump {
  line: number;
  before: string;
  after: string;
  seconds: number;
}

export interface KeptKey {
  key: string;
  key_cut: boolean;
  state: unknown;
  state_cut: boolean;
  timers: (string | null)[];
}

/** A page of an element's state after the newest committed batch. */
export interface KeptPage {
  at: string;
  keys: number;
  entries: KeptKey[];
  next: string | null;
  looked: number | null;
}

/**
 * The 95th percentile of the latency of an element of `pipeline` is above `ms` for `for_s` without a
 * break. With an empty `element`, any of its elements counts.
 */
export interface LatencyAbove {
  kind: "latency";
  pipeline: string;
  element: string;
  ms: number;
  for_s: number;
}

/** The dead letters of one reason. */
export interface LetterGroup {
  reason: string;
  count: number;
  newest: PeekedRecord;
}

/** An order of a user about dead letters. */
export interface LetterOrder {
  id: string;
  did: "drop" | "put-back" | "replay";
  reason: string;
  text: string;
  letters: number;
  mended: boolean;
  status: "pending" | "done" | "failed" | "cancelled";
  cancel_requested: boolean;
  message: string;
  taken: number;
  before: number;
  stayed: StayedLetter[];
  stayed_count: number;
  may_be_put_back: boolean;
  at: string;
  by: string | null;
}

/** The progress of the rows that an order has brought back. */
export interface LetterOrderProgress {
  id: string;
  did: "drop" | "put-back" | "replay";
  reason: string;
  text: string;
  letters: number;
  mended: boolean;
  status: "pending" | "done" | "failed" | "cancelled";
  cancel_requested: boolean;
  message: string;
  taken: number;
  before: number;
  stayed: StayedLetter[];
  stayed_count: number;
  may_be_put_back: boolean;
  at: string;
  by: string | null;
  read: number | null;
  again: number | null;
}

/** The row of a dead letter, for a user who wants to change its values. */
export interface LetterRow {
  offset: number;
  key: string | null;
  lies_at: RowPlace | null;
  raw: string;
  reason: string;
  at: string | null;
  cells: Record<string, unknown>;
}

export interface LetterRows {
  columns: Field[];
  rows: LetterRow[];
  more: boolean;
  topic: string;
}

/** Which letters: either named by their offsets, or all of a reason in a span. */
export interface Letters {
  offsets?: number[] | null;
  span?: LettersSpan | null;
  reason?: string;
}

/**
 * The letters that an order about a reason would concern: the open ones from one offset to before
 * another.
 */
export interface LettersCounted {
  letters: number;
  first: number;
  until: number;
  more: boolean;
}

/** Which dead letters are wanted. */
export interface LettersLook {
  limit?: number;
  text?: string;
  reason?: string;
}

/** All letters of a reason from the offset `first` to before `until`, as their count says them. */
export interface LettersSpan {
  first: number;
  until: number;
  text?: string;
}

/** An alarm. */
export interface LimitOf {
  pipeline: string;
  element: string;
}

export interface Limits {
  low: number | null;
  high: number | null;
}

export interface LinkIn {
  name?: string;
}

export type LiveBody = SnapshotMessage | NodesMessage | PipelinesMessage | ElementsMessage | MovesMessage | AlarmsMessage | HandoverMessage | OperationMessage | EventMessage;

export interface LiveElement {
  id: string;
  type: string;
  title: string;
  group: string;
  group_title: string;
  status: "running" | "paused" | "deploying" | "starting" | "moving" | "restoring" | "lagging" | "stalled" | "failed" | "stopped" | "silent" | "unheard" | "ended" | "view" | "draft";
  node: string | null;
  by_clock: boolean;
  epoch: number;
  seq: number;
  rows_in_per_s: number | null;
  rows_out_per_s: number | null;
  bytes_out_per_s: number | null;
  lag_rows: number | null;
  lag_unknown: string | null;
  last_row_at: string | null;
  next_row_due_at: string | null;
  owner_since: string | null;
  resumed_at: string | null;
  heard: boolean;
  batch_ms_p50: number | null;
  batch_ms_p95: number | null;
  batch_ms_p99: number | null;
  latency_ms_p50: number | null;
  latency_ms_p95: number | null;
  latency_ms_p99: number | null;
  latency_ms_target: number | null;
  cost: ElementCost | null;
  rows_in_total: number;
  rows_out_total: number;
  dead_letters_total: number;
  dead_letters_open: number;
  left_out_total: number;
  state_bytes: number | null;
  state_keys: number | null;
  checkpoint: CheckpointNote | null;
  paused: boolean;
  ended: boolean;
  follow: "exact" | "coalesced" | "none";
  follow_note: string;
  standby: StandbyNote | null;
  error: ElementError | null;
  replicas: ReplicaNote[];
  handover: string | null;
  user: UserPlaceNote | null;
  connector: ConnectorNote | null;
  alarm: "info" | "warning" | "critical" | null;
  actions: Partial<Record<"migrate" | "restore" | "pause" | "resume" | "checkpoint" | "keep_standby" | "drop_standby" | "rewind", Allowed>>;
}

export interface LoadAnswer {
  points: LoadPoint[];
  problem: Record<string, unknown> | null;
}

/** The load of an element or a node at one time, with only the figures that the tile shows. */
export interface LoadPoint {
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
  cpu_ratio?: number | null;
  memory_bytes?: number | null;
  memory_ratio?: number | null;
  disk_ratio?: number | null;
  battery_ratio?: number | null;
}

/** How busy an element or a node is. */
export interface LoadTile {
  id: string;
  title?: string;
  x: number;
  y: number;
  w: number;
  h: number;
  kind: "load";
  figure: "throughput" | "lag" | "latency" | "cpu" | "memory";
  pipeline?: string;
  element?: string;
  node?: string;
  range_s?: number;
}

/** A tile of load, and after which time its points are wanted, ms since 1970. */
export interface LoadWanted {
  tile: string;
  after?: number;
}

export interface LogEvent {
  id: number;
  at: string;
  severity: "info" | "warning" | "error";
  kind: string;
  pipeline: string | null;
  element: string | null;
  node: string | null;
  message: string;
  detail: unknown;
  cause: number | null;
}

export interface LookWanted {
  curves?: CurveWanted[];
  loads?: LoadWanted[];
}

/**
 * A node, or each node of a site, is empty from `begins` on for `minutes`. With `weekly` that is so every
 * week at the same time. What runs there leaves `lead_minutes` before.
 */
export interface Maintenance {
  kind: "maintenance";
  of: "node" | "site";
  name: string;
  begins: string;
  minutes: number;
  weekly: boolean;
  lead_minutes: number;
}

export interface Map {
  sites: MapSite[];
  broker: MapBroker[];
  links: MapLink[];
  given: GivenMatrix;
  given_rates: GivenMatrix;
}

/** The line from a site to the Kafka broker. */
export interface MapBroker {
  site: string;
  latency_ms: number;
  measured_at: string;
}

/** The line from one site to another. There is one in each direction. */
export interface MapLink {
  a: string;
  b: string;
  latency_ms: number | null;
  bytes_per_s: number | null;
  source: "measured" | "given";
  rate_given: boolean;
  measured_at: string | null;
  unreachable_since: string | null;
}

export interface MapNode {
  name: string;
  up: boolean;
  cordoned: boolean;
  cores: number;
  cpu_ratio: number | null;
  memory_bytes: number | null;
  memory_total_bytes: number | null;
  battery_ratio: number | null;
}

export interface MapSite {
  name: string;
  named: boolean;
  nodes: MapNode[];
  sources: MapSource[];
}

/** An element that reads data from outside. */
export interface MapSource {
  pipeline: string;
  element: string;
  title: string;
  node: string;
}

export interface Mark {
  what: "armed" | "announced" | "released" | "claimed";
  at_ms: number;
}

export interface Matrix {
  /** A line with the names of the sites (SiteA,SiteB), then for each site, in that order, a line with what is between it and each of them (0,10): latencies in ms, rates in Mbit/s */
  matrix: string;
}

export interface Me {
  username: string;
  role: string;
  csrf: string;
}

/** Times by the broker's clock, in ms since 1970. Waits in ms. */
export interface Measured {
  at_ms?: number | null;
  last_commit_at_ms?: number | null;
  first_commit_at_ms?: number | null;
  stopped_at_ms?: number;
  first_wait_ms?: number | null;
  usual_wait_ms?: number | null;
}

/**
 * When such an alarm is raised and cleared, and of what. Without `pipeline`, `element` or `node` it is
 * about all of them.
 */
export interface MetricRule {
  metric: "lag_rows" | "latency_ms" | "rate_low" | "rate_high" | "no_rows_s" | "element_failed" | "connector_failing" | "rows_lost" | "spool_percent" | "dead_letters" | "node_silent" | "disk_percent" | "cpu_percent" | "memory_percent";
  raise_at?: number;
  clear_at?: number | null;
  for_s?: number;
  clear_for_s?: number;
  severity?: "info" | "warning" | "critical";
  pipeline?: string | null;
  element?: string | null;
  node?: string | null;
}

export interface Migrate {
  target: string;
  strategy?: string | null;
}

export interface MissingFile {
  name: string;
  elements: string[];
  choices: string[];
}

/** The time and the traffic that a move to a node costs, and the load and the latencies after it. */
export interface MoveCost {
  bytes: number | null;
  bytes_per_s: number | null;
  latency_ms: number | null;
  copy_s: number | null;
  same_site: boolean;
  cpu: BeforeAfter;
  origin_cpu: BeforeAfter;
  upstream_ms: BeforeAfter | null;
  downstream_ms: BeforeAfter | null;
}

/** The spread of the figures of several moves, by nearest rank. */
export interface MoveSpread {
  n: number;
  least: number;
  p50: number;
  p95: number;
  most: number;
}

export interface MoveWanted {
  element: string;
  target: string;
}

/** The queues of all pipelines that are watched. */
export interface MovesMessage {
  type: "moves";
  data: QueuedMove[];
}

export interface MovesWanted {
  moves: MoveWanted[];
}

export interface Moving {
  pipeline: string;
  element: string;
  target: string;
}

export interface NamedDifference {
  from: string;
  to: string;
  added: Record<string, unknown>[];
  removed: Record<string, unknown>[];
  changed: ChangedElement[];
  groups: GroupsChange | null;
}

export interface NewConnection {
  fields: Record<string, unknown>;
  name: string;
  kind: string;
}

export interface NewName {
  name: string;
}

export interface NewPipeline {
  name?: string | null;
  title?: string;
  document?: Record<string, unknown> | null;
}

export interface NewTemplate {
  pipeline: string;
  title: string;
  description: string;
  text?: string;
  words?: Record<string, string>;
  replace?: string[];
}

export interface NewWall {
  title: string;
}

export interface Node {
  name: string;
  up: boolean;
  heard: boolean;
  ready: boolean;
  cordoned: boolean;
  draining: boolean;
  draining_since: string | null;
  drain_blocked: string | null;
  leaving_until: string | null;
  maintenance_until: string | null;
  url: string;
  version: string;
  version_wanted: string;
  cores: number;
  site: string;
  enrolled_at: string;
  last_seen_at: string | null;
  silent_at: string | null;
  alerts: NodeAlert[];
  load: NodeLoad | null;
  elements: HostedElement[];
  remove: Allowed;
  drain: DrainProgress | null;
}

export interface NodeAlert {
  message: string;
  since: string;
}

export interface NodeChange {
  site: string;
}

export interface NodeFailure {
  silence_s: number;
  groups: GroupAfter[];
  backups: string[];
}

export interface NodeForecast {
  start: "follows" | "warm" | "cold";
  bytes: number | null;
  had: boolean;
  standby: Way;
  "stop-and-copy": Way;
  restore: Restorations;
  cost: MoveCost | null;
  warnings: string[];
}

export interface NodeHistory {
  points: NodePoint[];
}

export interface NodeLoad {
  cpu_ratio?: number;
  memory_bytes?: number;
  java_bytes?: number;
  memory_total_bytes?: number;
  memory_ratio?: number;
  disk_free_bytes?: number;
  disk_ratio?: number;
  battery_ratio?: number | null;
  on_battery?: boolean | null;
}

/** The newest lines of a node's log, which the node keeps in memory. */
export interface NodeLog {
  node: string;
  at: string;
  since: string | null;
  matching: number;
  lines: NodeLogLine[];
}

export interface NodeLogLine {
  at: string | null;
  level: string;
  logger: string;
  text: string;
}

export interface NodePoint {
  t: number;
  cpu_ratio?: number | null;
  memory_bytes?: number | null;
  memory_ratio?: number | null;
  disk_ratio?: number | null;
  battery_ratio?: number | null;
}

/** All of them. The next two hold all pipelines, and all elements of one pipeline. */
export interface NodesMessage {
  type: "nodes";
  data: Node[];
}

export interface NotBroughtBack {
  element: string;
  home: string;
  reason: string;
}

export interface Note {
  note?: string;
}

export interface NoteIn {
  note?: string;
}

/** A value that the system shows, for a field of the connection. A person decides whether to accept it. */
export interface OfferedValue {
  field: string;
  value: string;
  title: string;
}

/**
 * Some hours of some days. A span that ends before it begins goes on to the next day; one that ends when
 * it begins is the whole day.
 */
export interface OnCall {
  days: number[];
  begins?: string;
  ends?: string;
}

export interface Operation {
  id: string;
  kind: "deploy" | "undeploy" | "upgrade";
  pipeline: string;
  deployment: string;
  status: "pending" | "running" | "done" | "failed";
  steps: Step[];
  phase: string;
  phase_since: string | null;
  waits_for: string;
  deadline: string | null;
  reason: string;
  message: string;
  code: string;
  faults: Fault[];
  undelivered: Undelivered[];
  hurry: boolean;
  again: boolean;
  next: string | null;
  created_at: string;
  ended_at: string | null;
}

export interface OperationMessage {
  type: "operation";
  data: Operation;
}

export interface Operator {
  type: string;
  title: string;
  summary: string;
  category: string;
  icon: string;
  inputs: Port[];
  outputs: Port[];
  params_schema: Record<string, unknown>;
  docs: string;
  example: Record<string, unknown>;
  stateful: boolean;
  follow: "exact" | "coalesced" | "none";
  follow_depends: boolean;
  delivery: "exactly once" | "at least once";
  delivery_why: string;
  ticks: "none" | "one" | "many";
  browsed_from: string;
  view: boolean;
  version: number;
}

export interface OptionalDraft {
  document?: Record<string, unknown> | null;
}

export interface Ordered {
  handover: Handover;
}

/** A node on which the element does not run. */
export interface OtherNode {
  node: string;
  refusal: string | null;
  cores: number;
  cores_free: number | null;
  upstream_ms: number | null;
  downstream_ms: number | null;
  state: "standby" | "backup" | "none";
  warnings: string[];
}

export interface Overview {
  pipelines: PipelineItem[];
  nodes: Node[];
  attention: AttentionLine[];
  throughput: Record<string, Throughput>;
}

/**
 * Everything that a node runs fits on busier nodes for `for_s`: their CPU stays MARGIN under
 * `threshold`.
 */
export interface Pack {
  threshold: number;
  for_s: number;
  kind: "pack";
}

export interface Peeked {
  records: PeekedRecord[];
  stream: string;
}

export interface PeekedRecord {
  offset: number;
  partition: number;
  at: string | null;
  key: string | null;
  value: unknown;
}

export interface PhaseEntry {
  phase: string;
  start_ms: number;
  end_ms: number | null;
  bytes: number;
  note: string;
  behind?: number | null;
}

export interface PictureElement {
  id: string;
  title: string;
  category: string;
  x: number;
  y: number;
  inputs: string[];
  status: string;
}

export interface PictureState {
  title: string;
  status: string;
  elements: PictureElement[];
}

/** A pipeline as it is drawn, with the states of its elements. */
export interface PictureTile {
  id: string;
  title?: string;
  x: number;
  y: number;
  w: number;
  h: number;
  kind: "picture";
  pipeline: string;
}

export interface PinIn {
  document?: Record<string, unknown> | null;
  node?: string | null;
  rows?: "source" | "running";
}

/** The rows that are pinned to an element. */
export interface PinnedRows {
  rows: number;
  at: string;
  by: string | null;
  expects: boolean;
  differences: RowDifference[];
  letters_expected: number | null;
}

export interface Pipeline {
  id: number;
  name: string;
  title: string;
  revision: number;
  status: "draft" | "deploying" | "running" | "attention" | "paused" | "ended" | "undeploying" | "undeployed" | "failed";
  message: string;
  deployed_version: number | null;
  deployment: string | null;
  upgrade_failed: UpgradeFailed | null;
  differs: boolean;
  elsewhere: Elsewhere[];
  updated_at: string;
  updated_by: string | null;
  description: string | null;
  elements: number;
  document: PipelineDocument;
}

/** A pipeline as a user has drawn it. */
export interface PipelineDocument {
  apiVersion?: "fogline/v1";
  kind?: "Pipeline";
  metadata: DocMetadata;
  spec?: DocSpec;
}

export interface PipelineItem {
  id: number;
  name: string;
  title: string;
  revision: number;
  status: "draft" | "deploying" | "running" | "attention" | "paused" | "ended" | "undeploying" | "undeployed" | "failed";
  message: string;
  deployed_version: number | null;
  deployment: string | null;
  upgrade_failed: UpgradeFailed | null;
  differs: boolean;
  elsewhere: Elsewhere[];
  updated_at: string;
  updated_by: string | null;
  description: string | null;
  elements: number;
}

export interface PipelineVersion {
  number: number;
  note: string;
  created_at: string;
  created_by: string | null;
  document: PipelineDocument;
}

export interface PipelinesMessage {
  type: "pipelines";
  data: PipelineItem[];
}

export interface Place {
  site: string;
}

export interface Policy {
  id: number;
  name: string;
  rule: CpuAbove | BatteryBelow | Maintenance | LatencyAbove | Spread | Pack | Apart | FollowUser | Sites;
  mode: "advice" | "automatic";
  moves_per_hour: number;
  enabled: boolean;
  standing: Standing[];
  created_by: string | null;
  created_at: string;
}

export interface PolicyChange {
  rule?: CpuAbove | BatteryBelow | Maintenance | LatencyAbove | Spread | Pack | Apart | FollowUser | Sites | null;
  moves_per_hour?: number | null;
  mode?: "advice" | "automatic" | null;
  enabled?: boolean | null;
}

export interface PolicyIn {
  rule: CpuAbove | BatteryBelow | Maintenance | LatencyAbove | Spread | Pack | Apart | FollowUser | Sites;
  moves_per_hour?: number;
  name: string;
  mode?: "advice" | "automatic";
  enabled?: boolean;
}

export interface Port {
  name: string;
  description: string;
  optional: boolean;
}

/** The beginning of a file: its lines, and the rows that the reading makes of them. */
export interface Preview {
  lines: PreviewLine[];
  columns: PreviewColumn[];
  rows: PreviewRow[];
}

/** A cell that could not be read, and why. */
export interface PreviewCell {
  column: number;
  text: string;
  why: string;
}

/** A column as the reading makes it. `unreadable` and `missing` count cells of the rows that are shown. */
export interface PreviewColumn {
  source: number | string;
  name: string;
  type: FieldType;
  unit?: string | null;
  unreadable?: number;
  missing?: number;
  is_time?: boolean;
}

/** What to show of a file: as this reading has it, or as it is detected around the places in `fixed`. */
export interface PreviewIn {
  reading?: Reading | null;
  /** place in the reading, such as `delimiter` -> value */
  fixed?: Record<string, JsonValue>;
}

export interface PreviewLetterOut {
  reason: string;
  raw: string;
}

/** A line of the file. For a file without lines, such as `.xlsx`, it is a row of its table. */
export interface PreviewLine {
  number: number;
  kind: "preamble" | "comment" | "header" | "units" | "row" | "footer";
  text: string;
  cells?: string[];
}

export interface PreviewLoss {
  element: string;
  title: string;
  count: number;
}

/**
 * A row as the reading makes it. It has a value for each column, which is null if there is none or if it
 * could not be read.
 */
export interface PreviewRow {
  line: number;
  values: JsonValue[];
  time?: string | null;
  unreadable?: PreviewCell[];
  reject?: string | null;
}

export interface PreviewRowOut {
  at: string | null;
  key: string | null;
  values: unknown[];
  reason: string | null;
}

export interface PreviewStreamOut {
  port: string;
  element: string;
  title: string;
  columns: Field[];
  rows: PreviewRowOut[];
  count: number;
}

export interface PreviewTrouble {
  kind: "busy" | "fetching" | "starting" | "reading" | "too-long" | "too-much" | "spark" | "unread" | "unreachable" | "failed" | "ended";
  element: string;
  title: string;
  message: string;
  next: string;
}

/** A question about a part of the file that can be read in two ways. Only a person can answer it. */
export interface Question {
  id: string;
  text: string;
  line?: number | null;
  column?: string | null;
  choices: Choice[];
}

/** The rows of a stream that a reader read last, and those that wait for it, oldest first. */
export interface Queue {
  stream: string;
  columns: Field[] | null;
  known: boolean;
  records: QueuedRecord[];
  looked: number;
  more: boolean;
}

/** What is wanted of a stream. */
export interface QueueLook {
  limit?: number;
  key?: string;
  text?: string;
  from_ms?: number | null;
}

/** A move in the queue of its pipeline. Control orders the move when the one before it is done. */
export interface QueuedMove {
  id: number;
  pipeline: string;
  element: string;
  target: string;
  state: "waits" | "moving" | "done" | "failed" | "cancelled" | "left-out";
  place: number;
  of: number;
  waits_for: string | null;
  handover: string | null;
  message: string;
  created_at: string;
  created_by: string | null;
  ended_at: string | null;
}

export interface QueuedRecord {
  offset: number;
  partition: number;
  at: string | null;
  key: string | null;
  value: unknown;
  waits: boolean;
}

/** One pipeline of a file with several pipelines. */
export interface ReadItem {
  at: number;
  line: number;
  name: string;
  title: string;
  elements: number;
  refused: string | null;
  missing: MissingFile[];
  there: DraftThere | null;
  free_title: string;
}

export interface ReadPipeline {
  document: Record<string, unknown>;
  missing: MissingFile[];
}

export interface Reading {
  kind?: "text" | "json-lines" | "parquet" | "xlsx";
  compression?: "" | "gzip" | "bzip2" | "xz" | "zstd" | "zip";
  member?: string | null;
  sheet?: string | null;
  records?: string | null;
  encoding?: string;
  delimiter?: string;
  quote?: "\"" | "'" | "";
  cuts?: number[];
  escape?: "" | "\\";
  commas?: string;
  comment?: string;
  header_line?: number | null;
  units_line?: number | null;
  first_line?: number;
  last_line?: number | null;
  decimal?: "." | ",";
  thousands?: "" | "." | "," | " " | "'";
  missing?: string[];
  columns?: ColumnReading[];
  time?: TimeReading | null;
}

export interface Replayed {
  offsets?: number[] | null;
  span?: LettersSpan | null;
  reason?: string;
  rows?: RowMended[] | null;
}

export interface ReplicaNote {
  node: string;
  role: string;
  phase: string;
  epoch: number;
  seq: number;
  behind: number;
  armed: string | null;
}

/** The result of an import. It is stored with the file. */
export interface Report {
  rows: number;
  dead: number;
  first_dead?: [number, string] | null;
  columns: ColumnReport[];
  begins?: string | null;
  ends?: string | null;
  usual_interval_s?: number | null;
  largest_jump?: Jump | null;
  skipped?: number;
  footer?: number;
  with_decimals?: string[];
  questions?: Question[];
}

export interface Requested {
  status: "requested";
}

export interface Restorations {
  "hot-standby": Expected | null;
  checkpoint: Expected | null;
  rewind: Expected | null;
}

export interface Restore {
  target?: string | null;
  checkpoint?: number | null;
  rewind?: boolean;
}

/** To which channels an alarm goes. Empty lists stand for all. */
export interface RouteSpec {
  channels: number[];
  severity?: "info" | "warning" | "critical";
  pipelines?: string[];
  sites?: string[];
  on_call?: OnCall[];
  zone?: string;
  wait_s?: number;
  repeat_min?: number;
  escalate_min?: number;
  escalate_to?: number[];
  tells_cleared?: boolean;
}

/** A row that is not the one that is expected at its place. */
export interface RowDifference {
  place: number;
  kind: "differs" | "missing" | "unexpected";
  cells: CellDifference[];
}

/** A row with its new values. A text may say a number, a truth value or a time. */
export interface RowMended {
  offset: number;
  cells: Record<string, string | boolean | number | null>;
  at?: string | null;
}

export interface RowPlace {
  partition: number;
  offset: number;
}

/** A curve, or a figure. */
export interface Series {
  pipeline: string;
  element: string;
  output?: string;
  column: string;
  key?: string | null;
  by?: string | null;
  axis?: "left" | "right";
  compare_yesterday?: boolean;
}

export interface SeveralChosen {
  text: string;
  files?: Record<string, string>;
  pipelines: Chosen[];
}

export interface SeveralText {
  text: string;
  files?: Record<string, string>;
}

export interface SilenceIn {
  note?: string;
  until: string;
}

/**
 * When a site appears, the parts of `pipeline` that are copied to sites get a copy there; an empty
 * `pipeline` means each. A site appears when a node there takes elements for `for_s` without a break. A site
 * is gone when none of its nodes was heard for `gone_s`. Its copies then wait for it, are taken out of the
 * pipeline, or go on elsewhere.
 */
export interface Sites {
  kind: "sites";
  pipeline: string;
  for_s: number;
  gone: "wait" | "take-out" | "elsewhere";
  gone_s: number;
}

export interface SnapshotData {
  nodes: Node[];
  pipelines: PipelineItem[];
  elements: Record<string, LiveElement[]>;
  handovers: Handover[];
  moves: QueuedMove[];
  operations: Operation[];
  events: LogEvent[];
  alarms: Alarm[];
}

export interface SnapshotMessage {
  type: "snapshot";
  data: SnapshotData;
}

/** An element whose rows a tile shows. */
export interface SourceState {
  pipeline: string;
  element: string;
  title: string;
  status: string | null;
  last_row_at: string | null;
  problem: string | null;
}

/**
 * The CPU of a node is `difference` (0..1) above that of the least busy one, for `for_s` without a
 * break.
 */
export interface Spread {
  kind: "spread";
  difference: number;
  for_s: number;
}

export interface Standby {
  node: string;
}

/** The standby that a user wants, or else the one that stays for a while after a move. */
export interface StandbyNote {
  node: string;
  behind: number | null;
  armed: boolean;
  wanted: boolean;
}

/** The advice of a policy about a node or an element, and since when it stands. */
export interface Standing {
  node: string;
  code: "unknown" | "calm" | "not-yet" | "moving" | "draining" | "empty" | "refused" | "resting" | "no-target" | "budget" | "move" | "waits" | "copy" | "take-out" | "restore";
  why: string;
  since: string;
  site?: string;
  group: string | null;
  pipeline: string | null;
  element: string | null;
  title: string | null;
  target: string | null;
}

export interface StateReady {
  ready: boolean;
  waits_for: string[];
}

export interface StayedLetter {
  offset: number;
  why: string;
}

export interface Step {
  name: string;
  state: string;
  at: string | null;
  change?: "added" | "changed" | "removed";
  title?: string;
  regrouped?: boolean;
  unconfirmed?: boolean;
}

export interface StoredFile {
  id: string;
  reference: string;
  name: string;
  size: number;
  sha256: string;
  kind: "table" | "model";
  state: "looking" | "asks" | "importing" | "imported" | "failed" | "cancelled" | "model";
  progress: FileProgress | null;
  error: FileTrouble | null;
  columns: FileColumn[];
  rows: number | null;
  dead_rows: number | null;
  unread_cells: number | null;
  has_time: boolean | null;
  table_bytes: number;
  uses: FileUse[];
  created_at: string;
  created_by: string | null;
}

/**
 * The content of a stream's records.
 *
 * `key` names the field whose text is the record's Kafka key; without a key it is None. Event time is no
 * field: it is the record's own timestamp, and the `_time` column of every frame.
 */
export interface StreamSchema {
  fields: Field[];
  key?: string | null;
}

/** The columns of the streams that run. */
export interface StreamSchemas {
  version: number;
  schemas: Record<string, StreamSchema>;
}

/** The newest rows of a stream. */
export interface TableTile {
  pipeline: string;
  element: string;
  output?: string;
  id: string;
  title?: string;
  x: number;
  y: number;
  w: number;
  h: number;
  kind: "table";
  columns: string[];
  rows?: number;
}

/** The parameters of an element after a user has ticked items of its system. */
export interface Taken {
  params: Record<string, unknown>;
}

export interface Template {
  name: string;
  title: string;
  description: string;
  shows: string;
  runs: string;
  data: string;
  replace: string[];
  made: TemplateMade | null;
  document: PipelineDocument;
}

/** Who saved a template of this installation, and when. */
export interface TemplateMade {
  by: string | null;
  at: string;
}

export interface TemplatePage {
  name: string;
  title: string;
  description: string;
  shows: string;
  runs: string;
  data: string;
  replace: string[];
  made: TemplateMade | null;
  document: PipelineDocument;
  text: string;
  elements: Record<string, string>;
}

export interface TestIn {
  node?: string;
  path?: string;
  find?: string;
  fields?: Record<string, unknown> | null;
}

export interface TestNew {
  fields: Record<string, unknown>;
  kind: string;
  node?: string;
}

export interface Text {
  text: string;
  files?: Record<string, string>;
}

export interface TextTile {
  id: string;
  title?: string;
  x: number;
  y: number;
  w: number;
  h: number;
  kind: "text";
  text: string;
}

export interface Throughput {
  sources: string[];
  step_ms: number;
  until_ms: number;
  rows_per_s: (number | null)[];
}

export interface TickedIn {
  params: Record<string, unknown>;
  ticked: Found[];
  columns?: Field[];
}

export interface TileState {
  sources: SourceState[];
  alarm: "info" | "warning" | "critical" | null;
  figure: FigureState | null;
  rows: Peeked | null;
  picture: PictureState | null;
  limits: Limits | null;
}

/**
 * The event time of a row, made of one column or of several that are joined by a space.
 *
 * `format` is `iso`; `epoch_s`, `epoch_ms`, `epoch_us` or `epoch_ns`; `labview_s`, `ntp_s`, `filetime`
 * or `dotnet_ticks`; `excel_days`, `excel_days_1904`, `matlab_days`, `julian_days` or
 * `modified_julian_days`;
 * or a pattern of strptime. A pattern of several columns names the parts in their order. `%S` may have a
 * fraction, `24:00` is the next midnight, and `seconds_of_day` is the seconds since the midnight of the date
 * before it.
 */
export interface TimeReading {
  columns: (number | string)[];
  format: string;
  zone?: string;
  marks?: "begin" | "end";
  newest_first?: boolean;
  jump?: "keep" | "skip" | "cut";
  jump_s?: number | null;
}

export interface TokenCreated {
  id: number;
  name: string;
  created_at: string;
  last_used_at: string | null;
  /** shown this once */
  token: string;
}

export interface TokenIn {
  name: string;
}

export interface TokenOut {
  id: number;
  name: string;
  created_at: string;
  last_used_at: string | null;
}

/** Where a row came from, from its element back to the sources. */
export interface Trace {
  stream: string;
  element: string;
  title: string;
  columns: Field[] | null;
  record: PeekedRecord;
  steps: TracedStep[];
  ends: TraceEnd[];
}

/** A source to which the trace leads. */
export interface TraceEnd {
  element: string;
  title: string;
  message: string;
}

/** The rows that an element made the row of, or some rows behind it. */
export interface TracedStep {
  element: string;
  title: string;
  port: string;
  stream: string;
  source_title: string;
  columns: Field[];
  records: PeekedRecord[];
  count: number;
  kept: boolean;
  notes: string[];
}

/** Rows that wait: for the connector to deliver them, or for the element itself to read them. */
export interface Undelivered {
  element: string;
  title: string;
  rows: number | null;
  estimated: boolean;
  why: string;
  unread: boolean;
}

export interface Undeploy {
  dry_run?: boolean;
}

export interface UndeployPlan {
  undelivered: Undelivered[] | null;
}

export interface Undo {
  pipelines: ImportedPipeline[];
}

export interface UpgradeFailed {
  message: string;
  at: string | null;
}

export interface UserChange {
  role?: string | null;
  active?: boolean | null;
  password?: string | null;
}

export interface UserIn {
  username: string;
  password: string;
  role?: string;
}

export interface UserOut {
  username: string;
  role: string;
  active: boolean;
  last_login: string | null;
}

export interface UserPlace {
  site: string;
  since: string;
  told_at: string;
  told_by: string;
}

/** The site where the user of an element is. */
export interface UserPlaceNote {
  site: string;
  since: string;
}

export interface Validation {
  faults: Fault[];
  schemas: Record<string, StreamSchema>;
}

/** A numbered copy of a draft, made by a deployment or by a user who saved it. */
export interface VersionItem {
  number: number;
  note: string;
  created_at: string;
  created_by: string | null;
}

export interface Wall {
  id: string;
  title: string;
  revision: number;
  tiles: (ChartTile | FigureTile | TableTile | PictureTile | LoadTile | TextTile)[];
  changed_at: string;
  changed_by: string | null;
}

export interface WallIn {
  title: string;
  tiles: (ChartTile | FigureTile | TableTile | PictureTile | LoadTile | TextTile)[];
}

export interface WallItem {
  id: string;
  title: string;
  tiles: number;
  changed_at: string;
  changed_by: string | null;
}

/** A link that shows the wall to everybody who has its secret. */
export interface WallLink {
  id: number;
  name: string;
  created_at: string;
  created_by: string | null;
  last_used_at: string | null;
  ends_at: string;
}

export interface WallLinkMade {
  id: number;
  name: string;
  created_at: string;
  created_by: string | null;
  last_used_at: string | null;
  ends_at: string;
  secret: string;
}

/** Everything that a wall shows. */
export interface WallLook {
  at: string;
  revision: number;
  tiles: Record<string, TileState>;
  curves: CurveAnswer[];
  loads: LoadAnswer[];
}

export interface WatchWish {
  pipeline: string | null;
  nodes: boolean;
}

export interface Way {
  ready: Expected | null;
  pause: Expected;
}

export interface WayOn {
  id: string;
  title: string;
  cost: string;
}

/** Why an element runs on its node. Fogline recorded the reason when the element came there. */
export interface WhyHere {
  node: string | null;
  sentence: string;
  at: string | null;
  handover: string | null;
  policy: string | null;
  others: OtherNode[];
}

/**
 * What a browser sends. The server accepts the parts that it can read, since a page may be of another
 * version.
 */
export interface Wish {
  watch?: WatchWish;
  resync?: boolean;
}

/** The records that both owners wrote to the journal around a change of owner, in their order. */
export interface Written {
  marks: Mark[];
  batches: Batch[];
}

/** A message of /ws/live: numbered by each socket for itself. */
export type LiveMessage = LiveBody & { n: number };
