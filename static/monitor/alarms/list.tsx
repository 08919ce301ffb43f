/** The alarms that are open, live, and those that are over, page by page. */
import { useState } from "react";
import { BellRing, CircleAlert, Info, TriangleAlert } from "lucide-react";
import { livePage, useParam } from "../../shared/address";
import { get } from "../../shared/api";
import { plural } from "../../shared/format";
import { useLive } from "../../shared/live";
import type { Alarm, AlarmPage } from "../../shared/types";
import { Ago, Problem, Skeleton, useLoaded } from "../../shared/ui/parts";
import { toastError } from "../../shared/ui/toast";
import { FilterSelect } from "../filters";
import { AlarmActions } from "./actions";
import { matches, SEVERITIES, STATUS_WORDS, valuesWords } from "./words";

const ICONS = { critical: CircleAlert, warning: TriangleAlert, info: Info };
const STATUSES = [
  ["raised", "Nobody knows of it"],
  ["acknowledged", "Acknowledged"],
  ["silenced", "Silenced"],
] as const;

type Show = (id: number) => void;

function useFilters(past: boolean) {
  const [words, setWords] = useParam("q");
  const [severity, setSeverity] = useParam("severity");
  const [pipeline, setPipeline] = useParam("pipeline");
  const [status, setStatus] = useParam("status");
  const pipelines = useLive((state) => state.pipelines);
  const bar = (
    <div className="filters">
      <input
        className="input"
        type="search"
        aria-label="Filter alarms"
        placeholder="Filter"
        value={words}
        onChange={(event) => setWords(event.target.value)}
      />
      <FilterSelect
        label="Severity"
        all="All severities"
        value={severity}
        options={SEVERITIES}
        onChange={setSeverity}
      />
      <FilterSelect
        label="Pipeline"
        all="All pipelines"
        value={pipeline}
        options={pipelines.map(({ name, title }) => [name, title] as const)}
        onChange={setPipeline}
      />
      {!past && (
        <FilterSelect label="State" all="All states" value={status} options={STATUSES} onChange={setStatus} />
      )}
    </div>
  );
  return { bar, words, severity, pipeline, status: past ? "" : status };
}

export function OpenAlarms({ onShow }: { onShow: Show }) {
  const { bar, ...wanted } = useFilters(false);
  const { alarms, loaded } = useLive();
  if (!loaded) return <Skeleton lines={4} height={40} />;
  const shown = alarms.filter((alarm) => matches(alarm, wanted));
  return (
    <div className="stack">
      {alarms.length === 0 ? (
        <div className="empty">
          <BellRing aria-hidden="true" />
          <h2>No alarm is active</h2>
          <p>
            Alarms come from alert elements of your pipelines, such as Hysteresis alarm, and from the rules
            here. Under Who is told you say who gets a message.
          </p>
        </div>
      ) : (
        bar
      )}
      {alarms.length > 0 && shown.length === 0 && <p className="muted">No alarm matches the filter.</p>}
      <AlarmList alarms={shown} onShow={onShow} />
    </div>
  );
}

export function PastAlarms({ onShow }: { onShow: Show }) {
  const { bar, words, severity, pipeline } = useFilters(true);
  const set = Object.entries({ severity, pipeline, text: words.trim() }).filter(([, value]) => value);
  const query = new URLSearchParams([["which", "past"], ...set]).toString();
  const { data, error, reload } = useLoaded(
    `past alarms ${query}`,
    (signal) => get<AlarmPage>(`/alarms?${query}`, signal),
    10_000,
  );
  const [older, setOlder] = useState<{ query: string; page: AlarmPage } | null>(null);
  const more = older?.query === query ? older.page : null;
  if (!data) return error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={4} height={40} />;
  const before = more ? more.before : data.before;
  const load = () =>
    get<AlarmPage>(`/alarms?${query}&before=${before}`)
      .then((page) =>
        setOlder({ query, page: { ...page, alarms: [...(more?.alarms ?? []), ...page.alarms] } }),
      )
      .catch((failed: unknown) => toastError("Older alarms could not be read", failed));
  const known = new Set(data.alarms.map(({ id }) => id));
  const all = [...data.alarms, ...(more?.alarms ?? []).filter(({ id }) => !known.has(id))];
  return (
    <div className="stack">
      {bar}
      {all.length === 0 && <p className="muted">No past alarm{set.length ? " matches the filter" : ""}.</p>}
      <AlarmList alarms={all} onShow={onShow} />
      {before !== null && (
        <button type="button" className="button" onClick={() => void load()}>
          Show older alarms
        </button>
      )}
    </div>
  );
}

function AlarmList({ alarms, onShow }: { alarms: readonly Alarm[]; onShow: Show }) {
  if (alarms.length === 0) return null;
  return (
    <ul className="alarms">
      {alarms.map((alarm) => (
        <AlarmLine key={alarm.id} alarm={alarm} onShow={onShow} />
      ))}
    </ul>
  );
}

function AlarmLine({ alarm, onShow }: { alarm: Alarm; onShow: Show }) {
  const Icon = ICONS[alarm.severity];
  const values = valuesWords(alarm.values);
  return (
    <li className={`alarm alarm--${alarm.severity} alarm--${alarm.status}`}>
      <Icon aria-label={alarm.severity} className="alarm__icon" />
      <div className="alarm__text">
        <button type="button" className="alarm__message" onClick={() => onShow(alarm.id)}>
          {alarm.message}
        </button>
        {values && !alarm.message.includes(values) && <p className="muted small">{values}</p>}
        <p className="muted small alarm__facts">
          <span>
            {STATUS_WORDS[alarm.status]}
            {alarm.status === "acknowledged" && ` by ${alarm.acknowledged_by}`}
            {alarm.status === "silenced" && ` by ${alarm.silenced_by}`}
            {alarm.note && alarm.status !== "raised" && `: ${alarm.note}`}
          </span>
          {alarm.count > 1 && <span>raised {plural(alarm.count, "time")}</span>}
          {alarm.pipeline && <a href={livePage(alarm.pipeline, alarm.element)}>{alarm.title}</a>}
          {alarm.node && <a href={`/nodes/${encodeURIComponent(alarm.node)}`}>{alarm.node}</a>}
        </p>
      </div>
      <span className="muted small alarm__since">
        <Ago at={alarm.raised_at} />
      </span>
      <div className="alarm__actions">
        <AlarmActions alarm={alarm} />
      </div>
    </li>
  );
}
