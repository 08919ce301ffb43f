import { useMemo } from "react";
import { useParam } from "../shared/address";
import { get } from "../shared/api";
import { instant } from "../shared/format";
import { useLive } from "../shared/live";
import { mount } from "../shared/mount";
import type { AuditEntry, LogEvent } from "../shared/types";
import { Ago, Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { Tabs } from "../shared/ui/tabs";
import { Feed } from "./feed";
import { Frame } from "./frame";

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

const keyOf = (event: LogEvent) =>
  event.id !== undefined ? String(event.id) : `${event.at} ${event.message}`;

function Events() {
  const { data, error, reload } = useLoaded("events", (signal) =>
    get<LogEvent[]>("/events?limit=300", signal),
  );
  const pushed = useLive((state) => state.events);
  const [severity, setSeverity] = useParam("severity");
  const [words, setWords] = useParam("q");
  const events = useMemo(() => {
    const all = new Map([...pushed, ...(data ?? [])].map((event) => [keyOf(event), event]));
    return [...all.values()].sort((a, b) => (instant(b.at) ?? 0) - (instant(a.at) ?? 0));
  }, [pushed, data]);
  const shown = events.filter(
    (event) =>
      (!severity || event.severity === severity) &&
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
        <select
          className="select"
          aria-label="Severity"
          value={severity}
          onChange={(event) => setSeverity(event.target.value)}
        >
          <option value="">All severities</option>
          <option value="error">Errors</option>
          <option value="warning">Warnings</option>
          <option value="info">Information</option>
        </select>
      </div>
      {shown.length ? (
        <Feed events={shown} />
      ) : (
        <p className="muted">{events.length ? "No event fits the filter." : "Nothing has happened yet."}</p>
      )}
    </div>
  );
}

function Audit() {
  const {
    data: entries,
    error,
    reload,
  } = useLoaded("audit", (signal) => get<AuditEntry[]>("/audit?limit=300", signal), 10_000);
  if (error && !entries) return <Problem error={error} onRetry={reload} />;
  if (!entries) return <Skeleton lines={6} />;
  if (entries.length === 0) return <p className="muted">Nobody has changed anything yet.</p>;
  return (
    <div className="table-wrap">
      <table className="table">
        <thead>
          <tr>
            <th>When</th>
            <th>Who</th>
            <th>What</th>
            <th>On</th>
            <th>Detail</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry, index) => (
            <tr key={entry.id ?? index}>
              <td className="muted">
                <Ago at={entry.at} />
              </td>
              <td>{entry.user ?? "system"}</td>
              <td>{entry.action}</td>
              <td>{entry.target}</td>
              <td className="mono muted">{detail(entry.detail)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function detail(value: unknown): string {
  if (!value || typeof value !== "object") return value ? String(value) : "";
  return Object.entries(value)
    .map(([name, each]) => `${name}: ${typeof each === "object" ? JSON.stringify(each) : String(each)}`)
    .join(", ");
}

mount(<EventsPage />);
