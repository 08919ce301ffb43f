/** Types of what the server sends, under the names that this code uses, and the browser's own. */
import type {
  Fault,
  Handover,
  LiveElement,
  Operation,
  Operator as Described,
  PipelineItem,
  Standing,
} from "./api.gen";

export type {
  Allowed,
  AttentionLine,
  AuditEntry,
  Begun,
  CheckpointNote,
  Copies,
  DeployChange,
  Decision,
  DeployPlan,
  DryRun,
  ElementCost,
  ElementError,
  ElementPoint,
  Expected,
  Fault,
  Field as SchemaField,
  Forecast,
  GroupAfter,
  Handover,
  HandoverPause,
  KeptKey,
  KeptPage,
  LiveElement,
  LogEvent,
  Map as SiteMap,
  MapLink,
  Measured,
  MoveCost,
  Node as ClusterNode,
  NodeFailure,
  NodeForecast,
  NodeLoad,
  NodePoint,
  Operation,
  OtherNode,
  PeekedRecord as PeekRecord,
  PhaseEntry as Phase,
  Pipeline,
  PipelineItem,
  PipelineVersion,
  Policy,
  Port,
  ReplicaNote,
  StandbyNote,
  Standing,
  Step,
  StoredFile as UploadedFile,
  StreamSchema,
  Template,
  TemplatePage,
  Validation,
  VersionItem,
  WhyHere,
} from "./api.gen";

/** What a badge shows. */
export type Status = LiveElement["status"] | PipelineItem["status"] | "standby";
export type PolicyCode = Standing["code"];
export type Follow = LiveElement["follow"];
export type ElementAction = keyof LiveElement["actions"];
export type Strategy = Handover["strategy"];
/** upgrade: another version takes over from what runs, group by group */
export type OperationKind = Operation["kind"];

export type Role = "viewer" | "operator" | "editor" | "admin";

export interface DocElement {
  id: string;
  type: string;
  title?: string | null;
  params?: Record<string, unknown>;
  inputs?: Record<string, string>;
  node?: string | null;
  /** It runs on a node of that site. */
  site?: string | null;
  /** Elements that it shares no node with; said of one of two, it holds for both. */
  apart?: string[] | null;
  /** The target of its results, from a row's arrival on; of a group the least of its elements' holds. */
  latency_ms?: number | null;
  /** It is a copy: of which element of which part, and its parameters that name the site, as drawn. */
  copy_of?: { part: string; element: string; params?: Record<string, unknown> } | null;
  /** Where it was drawn; `replace`: it came with a template, and the user's own source goes here. */
  ui?: { x: number; y: number; replace?: boolean } | null;
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

// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type JsonSchema = { [keyword: string]: any };

export type Operator = Omit<Described, "params_schema"> & { params_schema: JsonSchema };

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
