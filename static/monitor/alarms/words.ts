/** What alarms, rules and routes say, in words. Pure. */
import { listed, plural } from "../../shared/format";
import type {
  Alarm,
  AlarmChannel,
  AlarmMessage,
  AlarmMetric,
  MetricRule,
  RouteSpec,
} from "../../shared/types";
import { onCallWords } from "./on-call-words";

export const SEVERITIES = [
  ["critical", "Critical"],
  ["warning", "Warning"],
  ["info", "Information"],
] as const;

export const STATUS_WORDS: Record<Alarm["status"], string> = {
  raised: "Nobody knows of it yet",
  acknowledged: "Acknowledged",
  silenced: "Silenced",
  cleared: "Cleared",
};

export const CHANGE_WORDS: Record<string, string> = {
  raised: "raised",
  worse: "got worse",
  acknowledged: "acknowledged",
  silenced: "silenced",
  unsilenced: "silence ended",
  cleared: "cleared",
};

export const REASON_WORDS: Record<AlarmMessage["reason"], string> = {
  raised: "raised",
  worse: "got worse",
  repeat: "repeated",
  escalation: "escalated",
  cleared: "cleared",
  test: "test",
};

/** The values that an alarm had last: "temperature 81.5, limit 80". */
export function valuesWords(values: Record<string, unknown>): string {
  return Object.entries(values)
    .map(
      ([name, value]) =>
        `${name} ${typeof value === "number" ? Number(value.toPrecision(6)) : String(value)}`,
    )
    .join(", ");
}

/** Whether the page shows the alarm. */
export function matches(
  alarm: Alarm,
  {
    words,
    severity,
    pipeline,
    status,
  }: { words: string; severity: string; pipeline: string; status: string },
): boolean {
  const text = `${alarm.message} ${alarm.title} ${alarm.key ?? ""} ${alarm.node ?? ""} ${alarm.site ?? ""}`;
  return (
    (!severity || alarm.severity === severity) &&
    (!pipeline || alarm.pipeline === pipeline) &&
    (!status || alarm.status === status) &&
    text.toLowerCase().includes(words.trim().toLowerCase())
  );
}

const seconds = (value: number): string =>
  value % 60 === 0 && value > 0 ? plural(value / 60, "minute") : plural(value, "second");

const WHEN: Record<MetricRule["metric"], (whose: string, limit: string) => string> = {
  lag_rows: (whose, limit) => `more than ${limit} rows wait for ${whose}`,
  latency_ms: (whose, limit) => `rows take more than ${limit} ms through ${whose}`,
  rate_low: (whose, limit) => `${whose} has fewer than ${limit} rows/s`,
  rate_high: (whose, limit) => `${whose} has more than ${limit} rows/s`,
  no_rows_s: (whose, limit) => `${whose} has had no rows for more than ${limit} s`,
  element_failed: (whose) => `${whose} has failed`,
  connector_failing: (whose) => `the connector of ${whose} fails`,
  rows_lost: (whose) => `the connector of ${whose} has lost rows`,
  spool_percent: (whose, limit) =>
    `the disk buffer of the connector of ${whose} is more than ${limit} % full`,
  dead_letters: (whose, limit) => `more than ${limit} rows of ${whose} are dead letters`,
  node_silent: (whose) => `${whose} does not answer`,
  disk_percent: (whose, limit) => `the disk of ${whose} is more than ${limit} % full`,
  cpu_percent: (whose, limit) => `the CPU of ${whose} is more than ${limit} % busy`,
  memory_percent: (whose, limit) => `the memory of ${whose} is more than ${limit} % full`,
};

export function ruleSentence(rule: MetricRule, metrics: readonly AlarmMetric[]): string {
  const kind = metrics.find(({ metric }) => metric === rule.metric);
  if (!kind) return rule.metric;
  const whose = rule.element
    ? `${rule.element} of ${rule.pipeline ?? ""}`
    : rule.pipeline
      ? `an element of ${rule.pipeline}`
      : kind.of === "node"
        ? (rule.node ?? "a node")
        : "an element";
  const where = rule.node && kind.of === "element" ? ` on ${rule.node}` : "";
  const time = rule.for_s ? `, for ${seconds(rule.for_s)}` : "";
  const end =
    !kind.flag && rule.clear_at != null && rule.clear_at !== rule.raise_at
      ? ` It is cleared at ${rule.clear_at} ${kind.unit}.`
      : "";
  const what = WHEN[rule.metric](`${whose}${where}`, (rule.raise_at ?? 0).toLocaleString("en"));
  const severity = rule.severity ?? "warning";
  return `${severity === "info" ? "An" : "A"} ${severity} alarm when ${what}${time}.${end}`;
}

export function routeSentence(spec: RouteSpec, channels: readonly AlarmChannel[]): string {
  const named = (ids: readonly number[]) =>
    listed(ids.map((id) => channels.find((channel) => channel.id === id)?.name ?? `channel ${id}`));
  const whose = spec.pipelines?.length ? ` of ${listed(spec.pipelines)}` : "";
  const where = spec.sites?.length ? ` at ${listed(spec.sites)}` : "";
  const when = spec.on_call?.length
    ? ` It sends messages ${onCallWords(spec.on_call, spec.zone ?? "UTC")}.`
    : "";
  const least =
    spec.severity === "info"
      ? "Alarms"
      : spec.severity === "critical"
        ? "Critical alarms"
        : "Warnings and worse";
  const again = spec.repeat_min
    ? ` Repeated every ${plural(spec.repeat_min, "minute")} until somebody acknowledges.`
    : "";
  const late =
    spec.escalate_min && spec.escalate_to?.length
      ? ` If nobody acknowledges for ${plural(spec.escalate_min, "minute")}, they go to ${named(spec.escalate_to)}, too.`
      : "";
  return `${least}${whose}${where} go to ${named(spec.channels)}.${when}${again}${late}`;
}

/** What became of a message. */
export function messageState(message: AlarmMessage): { word: string; status: string } {
  if (message.sent_at) return { word: "sent", status: "done" };
  if (message.given_up_at) return { word: message.attempts ? "given up" : "not needed", status: "stopped" };
  return message.error ? { word: "not taken yet", status: "failed" } : { word: "waits", status: "moving" };
}
