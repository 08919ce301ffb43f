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
  BroughtBack,
  CheckpointNote,
  Copies,
  DeployChange,
  Decision,
  DeployPlan,
  DocElement,
  DocGroup,
  DryRun,
  ElementCost,
  ElementError,
  WayOn,
  ElementPoint,
  ElementPreview,
  Expected,
  Fault,
  Field as SchemaField,
  Forecast,
  Former,
  GroupAfter,
  Batch,
  Handover,
  HandoverDetails,
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
  PipelineDocument,
  PipelineItem,
  PipelineVersion,
  Policy,
  Port,
  Queue,
  ReplicaNote,
  StandbyNote,
  Standing,
  Step,
  StreamSchema,
  Template,
  TemplatePage,
  Trace,
  TracedStep,
  Validation,
  VersionItem,
  WhyHere,
} from "./api.gen";

/** What a badge shows. */
export type Status = LiveElement["status"] | PipelineItem["status"] | "standby";
export type PolicyCode = Standing["code"];
export type Follow = LiveElement["follow"];
export type Strategy = Handover["strategy"];
/** upgrade: another version takes over from what runs, group by group */
export type OperationKind = Operation["kind"];

export type Role = "viewer" | "operator" | "editor" | "admin";

// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type JsonSchema = { [keyword: string]: any };

export type Operator = Omit<Described, "params_schema"> & { params_schema: JsonSchema };

export interface Problem {
  type?: string;
  title: string;
  /** of its page */
  code?: string;
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
