/** Types of what the server sends, under the names that this code uses, and the browser's own. */
import type {
  Fault,
  Handover,
  LiveElement,
  Operation,
  Operator as Described,
  PipelineItem,
  Standing,
  Wall,
} from "./api.gen";

export type {
  Alarm,
  AlarmChannel,
  AlarmMessage,
  AlarmMessages,
  AlarmMetric,
  AlarmPage,
  AlarmRoute,
  AlarmRule,
  AlarmWithHistory,
  MetricRule,
  RouteSpec,
  OnCall,
  MissingFile,
  ReadItem,
  ReadPipeline,
  StateReady,
  ImportedPipeline,
  Allowed,
  Annotation,
  AttentionLine,
  AuditEntry,
  Batch,
  Begun,
  BroughtBack,
  ChartTile,
  CheckpointNote,
  Node as ClusterNode,
  ConnectionItem,
  ConnectionKind,
  ConnectionTested,
  ConnectorNote,
  Copies,
  Curve,
  CurveSpan,
  CurveWanted,
  DeadLetters,
  Decision,
  DeployChange,
  DeployPlan,
  DocElement,
  DocGroup,
  DocNote,
  DryRun,
  ElementCost,
  ElementError,
  ElementPoint,
  ElementPreview,
  ExpectedCheck,
  Expected,
  Fault,
  FigureState,
  FigureTile,
  Forecast,
  Former,
  FoundThing,
  GroupAfter,
  Handover,
  HandoverDetails,
  HandoverPause,
  KeptKey,
  KeptPage,
  LiveElement,
  LoadPoint,
  LoadTile,
  LoadWanted,
  LookWanted,
  LetterGroup,
  LetterOrder,
  LetterOrderProgress,
  LetterRow,
  LetterRows,
  LettersCounted,
  LogEvent,
  MapLink,
  Measured,
  MoveCost,
  NodeFailure,
  NodeForecast,
  NodeLoad,
  NodeLog,
  NodeLogLine,
  NodePoint,
  Operation,
  OtherNode,
  Peeked,
  PeekedRecord as PeekRecord,
  PhaseEntry as Phase,
  PictureState,
  PictureTile,
  PinnedRows,
  Pipeline,
  PipelineDocument,
  PipelineItem,
  PipelineVersion,
  Policy,
  Port,
  Queue,
  QueuedMove,
  ReplicaNote,
  Field as SchemaField,
  Series,
  Map as SiteMap,
  SourceState,
  RowDifference,
  StandbyNote,
  Standing,
  Step,
  StreamSchema,
  StreamSchemas,
  TableTile,
  Template,
  Taken,
  TemplatePage,
  Trace,
  TracedStep,
  TextTile,
  Limits,
  TileState,
  UndeployPlan,
  Undelivered,
  Validation,
  VersionItem,
  Wall,
  WallItem,
  WallLink,
  WallLinkMade,
  WallLook,
  WayOn,
  WhyHere,
} from "./api.gen";

/** What a badge shows. */
export type Status = LiveElement["status"] | PipelineItem["status"] | "standby";
export type PolicyCode = Standing["code"];
export type Follow = LiveElement["follow"];
export type Strategy = Handover["strategy"];
/** upgrade: another version takes over from what runs, group by group */
export type OperationKind = Operation["kind"];

/** One place of a wall, with what it shows. */
export type Tile = Wall["tiles"][number];

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
