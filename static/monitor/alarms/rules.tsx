/** The rules that raise alarms by what is measured, and the form of one. */
import { useState } from "react";
import { Plus } from "lucide-react";
import { del, get, patch, post, problemText } from "../../shared/api";
import { plural } from "../../shared/format";
import { useLive } from "../../shared/live";
import { typedNumber } from "../../shared/numbers";
import { roleReason } from "../../shared/page";
import type { AlarmMetric, AlarmRule, MetricRule } from "../../shared/types";
import { confirm } from "../../shared/ui/confirm";
import { Dialog } from "../../shared/ui/dialog";
import { Choice, Text } from "../../shared/ui/field";
import { Problem, Skeleton, StatusMark, useLoaded } from "../../shared/ui/parts";
import { toastError } from "../../shared/ui/toast";
import { ItemHead } from "./item";
import { ruleSentence, SEVERITIES } from "./words";

const USUAL: { name: string; rule: MetricRule }[] = [
  { name: "Node does not answer", rule: { metric: "node_silent", severity: "critical", for_s: 10 } },
  { name: "Element has failed", rule: { metric: "element_failed", severity: "critical", for_s: 5 } },
  { name: "Connector fails", rule: { metric: "connector_failing", severity: "warning", for_s: 10 } },
  {
    name: "Buffer of a connector fills up",
    rule: { metric: "spool_percent", raise_at: 50, clear_at: 25, severity: "warning" },
  },
  { name: "Connector has lost rows", rule: { metric: "rows_lost", severity: "info" } },
  {
    name: "Disk nearly full",
    rule: { metric: "disk_percent", raise_at: 90, clear_at: 85, for_s: 60, severity: "warning" },
  },
  { name: "Rows could not be read", rule: { metric: "dead_letters", raise_at: 0, severity: "warning" } },
];

export function Rules() {
  const {
    data: rules,
    error,
    reload,
  } = useLoaded("alarm rules", (signal) => get<AlarmRule[]>("/alarms/rules", signal), 5000);
  const { data: metrics = [] } = useLoaded("alarm metrics", (signal) =>
    get<AlarmMetric[]>("/alarms/metrics", signal),
  );
  const [form, setForm] = useState<AlarmRule | "new" | null>(null);
  const locked = roleReason("operator");
  if (!rules) return error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={3} height={40} />;
  const missing = USUAL.filter(({ name }) => !rules.some((rule) => rule.name === name));
  const addUsual = async () => {
    try {
      for (const each of missing) await post("/alarms/rules", each);
    } catch (failed) {
      toastError("Not all rules were made", failed);
    }
    reload();
  };
  return (
    <div className="stack">
      <h2 className="visually-hidden">Rules</h2>
      <div className="row row--wrap">
        <button
          type="button"
          className="button button--primary"
          disabled={!!locked}
          title={locked ?? undefined}
          onClick={() => setForm("new")}
        >
          <Plus aria-hidden="true" />
          New rule
        </button>
        {missing.length > 0 && (
          <button
            type="button"
            className="button"
            disabled={!!locked}
            title={locked ?? missing.map(({ name }) => name).join(", ")}
            onClick={() => void addUsual()}
          >
            Add the usual {plural(missing.length, "rule")}
          </button>
        )}
      </div>
      {rules.length === 0 && (
        <p className="muted">
          No rule yet. A rule raises an alarm by a measured value: waiting rows, latency, rates, no rows, dead
          letters, a connector that fails or loses rows, a node that does not answer, its disk, CPU or memory.
          Alert elements in pipelines need no rule.
        </p>
      )}
      <ul className="alarm-items">
        {rules.map((rule) => (
          <Item key={rule.id} rule={rule} metrics={metrics} onEdit={() => setForm(rule)} onChange={reload} />
        ))}
      </ul>
      {form && (
        <RuleForm
          row={form === "new" ? null : form}
          metrics={metrics}
          onClose={() => setForm(null)}
          onSaved={() => {
            setForm(null);
            reload();
          }}
        />
      )}
    </div>
  );
}

function Item({
  rule,
  metrics,
  onEdit,
  onChange,
}: {
  rule: AlarmRule;
  metrics: readonly AlarmMetric[];
  onEdit: () => void;
  onChange: () => void;
}) {
  const enable = () =>
    patch(`/alarms/rules/${rule.id}`, { enabled: !rule.enabled })
      .then(onChange)
      .catch((error: unknown) => toastError(`${rule.name} was not changed`, error));
  const remove = async () => {
    const agreed = await confirm({
      title: `Delete ${rule.name}?`,
      text: "The alarms that it has raised are cleared. Past ones stay.",
      action: `Delete ${rule.name}`,
      danger: true,
    });
    if (!agreed) return;
    await del(`/alarms/rules/${rule.id}`)
      .then(onChange)
      .catch((error: unknown) => toastError(`${rule.name} was not deleted`, error));
  };
  return (
    <li>
      <ItemHead
        name={rule.name}
        mark={
          rule.open > 0 && rule.enabled ? (
            <StatusMark status="failed" word={plural(rule.open, "active alarm")} />
          ) : (
            <StatusMark status={rule.enabled ? "running" : "stopped"} word={rule.enabled ? "on" : "off"} />
          )
        }
        locked={roleReason("operator")}
        actions={[
          [rule.enabled ? "Switch off" : "Switch on", () => void enable()],
          ["Change", onEdit],
          ["Delete", () => void remove()],
        ]}
      />
      <p>{ruleSentence(rule.rule, metrics)}</p>
    </li>
  );
}

const NUMBER_MAX = 12;

function RuleForm({
  row,
  metrics,
  onClose,
  onSaved,
}: {
  row: AlarmRule | null;
  metrics: readonly AlarmMetric[];
  onClose: () => void;
  onSaved: () => void;
}) {
  const { pipelines, elements, nodes } = useLive();
  const [name, setName] = useState(row?.name ?? "");
  const [metric, setMetric] = useState<MetricRule["metric"]>(row?.rule.metric ?? "lag_rows");
  const [severity, setSeverity] = useState(row?.rule.severity ?? "warning");
  const [pipeline, setPipeline] = useState(row?.rule.pipeline ?? "");
  const [element, setElement] = useState(row?.rule.element ?? "");
  const [node, setNode] = useState(row?.rule.node ?? "");
  const [raiseAt, setRaiseAt] = useState(String(row?.rule.raise_at ?? 1000));
  const [clearAt, setClearAt] = useState(row?.rule.clear_at == null ? "" : String(row.rule.clear_at));
  const [forS, setForS] = useState(String(row?.rule.for_s ?? 30));
  const [clearForS, setClearForS] = useState(String(row?.rule.clear_for_s ?? 0));
  const [refused, setRefused] = useState("");
  const kind = metrics.find((each) => each.metric === metric);
  const ofElement = kind?.of !== "node";
  const number = (typed: string): number | null => {
    const value = typedNumber(typed);
    return typed.trim() !== "" && Number.isFinite(value) && value >= 0 ? value : null;
  };
  const fault = (typed: string, optional = false) =>
    number(typed) === null && !(optional && typed.trim() === "") ? "a number, 0 or greater" : null;
  const faulty = (!kind?.flag && (fault(raiseAt) ?? fault(clearAt, true))) ?? fault(forS) ?? fault(clearForS);
  const rule: MetricRule = {
    metric,
    severity,
    for_s: number(forS) ?? 0,
    clear_for_s: number(clearForS) ?? 0,
    ...(kind?.flag ? {} : { raise_at: number(raiseAt) ?? 0, clear_at: number(clearAt) }),
    ...(ofElement && pipeline ? { pipeline, ...(element ? { element } : {}) } : {}),
    ...(node ? { node } : {}),
  };
  const save = () => {
    const saved = row ? patch(`/alarms/rules/${row.id}`, { rule }) : post("/alarms/rules", { name, rule });
    saved.then(onSaved).catch((error: unknown) => setRefused(problemText(error)));
  };
  const all: [string, string] = ["", "all"];
  return (
    <Dialog
      open
      onClose={onClose}
      size="m"
      title={row ? `Change ${row.name}` : "New rule"}
      description={ruleSentence(rule, metrics)}
      footer={
        <>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button
            type="button"
            className="button button--primary"
            disabled={!!faulty || (!row && !name.trim())}
            onClick={save}
          >
            {row ? "Save rule" : "Create rule"}
          </button>
        </>
      }
    >
      <div className="stack">
        {!row && <Text label="Name" value={name} onChange={setName} maxLength={60} autoFocus />}
        <Choice
          label="What"
          value={metric}
          options={metrics.map((each) => [
            each.metric as MetricRule["metric"],
            `${each.of === "node" ? "node" : "element"}: ${each.title}`,
          ])}
          onChange={setMetric}
        />
        {ofElement && (
          <Choice
            label="Pipeline"
            value={pipeline}
            options={[all, ...pipelines.map((each): [string, string] => [each.name, each.title])]}
            onChange={(next) => {
              setPipeline(next);
              setElement("");
            }}
          />
        )}
        {ofElement && pipeline && (
          <Choice
            label="Element"
            value={element}
            options={[
              all,
              ...(elements[pipeline] ?? []).map((each): [string, string] => [each.id, each.title]),
            ]}
            onChange={setElement}
          />
        )}
        <Choice
          label="Node"
          value={node}
          options={[all, ...nodes.map((each): [string, string] => [each.name, each.name])]}
          onChange={setNode}
        />
        {!kind?.flag && (
          <>
            <Text
              label={`Raised ${kind?.below ? "below" : "above"}, ${kind?.unit ?? ""}`}
              value={raiseAt}
              onChange={setRaiseAt}
              fault={fault(raiseAt)}
              maxLength={NUMBER_MAX}
              number
            />
            <Text
              label={`Cleared at, ${kind?.unit ?? ""} (empty: the same)`}
              value={clearAt}
              onChange={setClearAt}
              fault={fault(clearAt, true)}
              maxLength={NUMBER_MAX}
              number
            />
          </>
        )}
        <Text
          label="Raised after, s"
          value={forS}
          onChange={setForS}
          fault={fault(forS)}
          maxLength={NUMBER_MAX}
          number
        />
        <Text
          label="Cleared after, s"
          value={clearForS}
          onChange={setClearForS}
          fault={fault(clearForS)}
          maxLength={NUMBER_MAX}
          number
        />
        <Choice
          label="Severity"
          value={severity}
          options={SEVERITIES.map(([value, title]) => [value, title])}
          onChange={setSeverity}
        />
        {refused && (
          <p className="field__error" role="alert">
            {refused}
          </p>
        )}
      </div>
    </Dialog>
  );
}
