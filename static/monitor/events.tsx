import { useMemo } from "react";
import { useParam } from "../shared/address";
import { get } from "../shared/api";
import { instant } from "../shared/format";
import { useLive } from "../shared/live";
import { mount } from "../shared/mount";
import type { LogEvent } from "../shared/types";
import { Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { Tabs } from "../shared/ui/tabs";
import { Audit } from "./audit";
import { EVENT_KINDS } from "./audit-words";
import { Feed } from "./feed";
import { FilterSelect } from "./filters";
import { Frame } from "../shared/ui/frame";
import "./monitor.css";

function EventsPage() {
  const [tab, setTab] = useParam("tab");
  return (
    <Frame title="Events and audit">
      <div className="card">
        <Tabs
          label="Events and audit"
          value={tab || "events"}
          onChange={(next) => setTab(next === "events" ? "" : next)}
          tabs={[
            { id: "events", title: "Events", content: <Events /> },
            { id: "audit", title: "Audit", content: <Audit /> },
          ]}
        />
      </div>
    </Frame>
  );
}

const SEVERITIES = [
  ["error", "Errors"],
  ["warning", "Warnings"],
  ["info", "Information"],
] as const;

const keyOf = (event: LogEvent) =>
  event.id !== undefined ? String(event.id) : `${event.at} ${event.message}`;

function Events() {
  const [pipeline, setPipeline] = useParam("pipeline");
  const [asked, setKind] = useParam("kind");
  const kind = EVENT_KINDS.some(([id]) => id === asked) ? asked : ""; // the other tab has kinds of its own
  const [severity, setSeverity] = useParam("severity");
  const [words, setWords] = useParam("q");
  const set = Object.entries({ pipeline, kind, severity }).filter(([, value]) => value);
  const query = new URLSearchParams([["limit", "300"], ...set]).toString();
  const { data, error, reload } = useLoaded(`events ${query}`, (signal) =>
    get<LogEvent[]>(`/events?${query}`, signal),
  );
  const pushed = useLive((state) => state.events);
  const pipelines = useLive((state) => state.pipelines);
  const events = useMemo(() => {
    const all = new Map([...pushed, ...(data ?? [])].map((event) => [keyOf(event), event]));
    return [...all.values()].sort((a, b) => (instant(b.at) ?? 0) - (instant(a.at) ?? 0));
  }, [pushed, data]);
  const shown = events.filter(
    (event) =>
      (!severity || event.severity === severity) &&
      (!pipeline || event.pipeline === pipeline) &&
      (!kind || event.kind.startsWith(`${kind}.`)) &&
      `${event.message} ${event.pipeline} ${event.element} ${event.node}`
        .toLowerCase()
        .includes(words.toLowerCase()),
  );
  if (error && events.length === 0) return <Problem error={error} onRetry={reload} />;
  if (data === undefined && events.length === 0) return <Skeleton lines={6} />;
  return (
    <div className="stack">
      <div className="filters">
        <input
          className="input"
          type="search"
          aria-label="Filter events"
          placeholder="Filter"
          value={words}
          onChange={(event) => setWords(event.target.value)}
        />
        <FilterSelect
          label="Pipeline"
          all="All pipelines"
          value={pipeline}
          options={pipelines.map(({ name }) => [name, name] as const)}
          onChange={setPipeline}
        />
        <FilterSelect label="Kind" all="All kinds" value={kind} options={EVENT_KINDS} onChange={setKind} />
        <FilterSelect
          label="Severity"
          all="All severities"
          value={severity}
          options={SEVERITIES}
          onChange={setSeverity}
        />
      </div>
      {shown.length ? (
        <Feed events={shown} />
      ) : (
        <p className="muted">
          {events.length ? "No event matches the filter." : "Nothing has happened yet."}
        </p>
      )}
    </div>
  );
}

mount(<EventsPage />);
