import { useMemo } from "react";
import { livePage, useParam } from "../shared/address";
import { get } from "../shared/api";
import { exact } from "../shared/format";
import { useLive } from "../shared/live";
import { nameIn } from "../shared/live-reducer";
import { roleReason } from "../shared/page";
import type { AuditEntry } from "../shared/types";
import { Details } from "../shared/ui/details";
import { Ago, Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { actionWords, AUDIT_KINDS, pipelineOf } from "./audit-words";
import { FilterSelect } from "./filters";
import "./audit.css";

const LIMIT = 300;

/** Who did what. Saves in quick succession are one line. The address keeps the filter. */
export function Audit() {
  const locked = roleReason("operator");
  if (locked) return <p className="muted">Only operators can see the audit log. {locked}</p>;
  return <Log />;
}

function Log() {
  const [pipeline, setPipeline] = useParam("pipeline");
  const [person, setPerson] = useParam("person");
  const [asked, setKind] = useParam("kind");
  const kind = AUDIT_KINDS.some(([id]) => id === asked) ? asked : ""; // the other tab has kinds of its own
  const query = useMemo(() => {
    const wanted = { pipeline, user: person, kind };
    const set = Object.entries(wanted).filter(([, value]) => value);
    return new URLSearchParams([["limit", String(LIMIT)], ["fold", "true"], ...set]).toString();
  }, [pipeline, person, kind]);
  const {
    data: entries,
    error,
    reload,
  } = useLoaded(`audit ${query}`, (signal) => get<AuditEntry[]>(`/audit?${query}`, signal), 10_000);
  const { data: people = [] } = useLoaded("people", (signal) => get<string[]>("/audit/people", signal));
  const pipelines = useLive((state) => state.pipelines);
  const names = pipelines.map(({ name }) => [name, name] as const);
  return (
    <div className="stack">
      <div className="filters" role="group" aria-label="Filter the audit log">
        <FilterSelect
          label="Pipeline"
          all="All pipelines"
          value={pipeline}
          options={names}
          onChange={setPipeline}
        />
        <FilterSelect
          label="Person"
          all="Everybody"
          value={person}
          options={people.map((name) => [name, name === "system" ? "Fogline itself" : name] as const)}
          onChange={setPerson}
        />
        <FilterSelect label="Kind" all="All kinds" value={kind} options={AUDIT_KINDS} onChange={setKind} />
      </div>
      {error && !entries ? <Problem error={error} onRetry={reload} /> : null}
      {!entries && !error && <Skeleton lines={6} />}
      {entries?.length === 0 && (
        <p className="muted">
          {pipeline || person || kind ? "Nothing matches the filter." : "Nobody has changed anything yet."}
        </p>
      )}
      {entries && entries.length > 0 && <Entries entries={entries} />}
    </div>
  );
}

function Entries({ entries }: { entries: AuditEntry[] }) {
  return (
    <div className="table-wrap">
      <table className="table">
        <thead>
          <tr>
            <th>When</th>
            <th>Who</th>
            <th>On</th>
            <th>What</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry, index) => (
            <tr key={entry.id ?? index}>
              <td className="muted">
                <Ago at={entry.at} />
              </td>
              <td>{!entry.user || entry.user === "system" ? "Fogline itself" : entry.user}</td>
              <td>
                <Target entry={entry} />
              </td>
              <td className="audit__what">
                {actionWords(entry)}
                <More entry={entry} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Target({ entry }: { entry: AuditEntry }) {
  const of = pipelineOf(entry);
  const name = useLive(({ elements }) => (of ? nameIn(elements, of.pipeline, of.element) : ""));
  const there = useLive(({ pipelines }) => pipelines.some((each) => each.name === of?.pipeline));
  if (!of) return <>{entry.target}</>;
  const words = of.element ? `${name} of ${of.pipeline}` : of.pipeline;
  return there ? <a href={livePage(of.pipeline, of.element || null)}>{words}</a> : <>{words}</>;
}

/** All details of an entry, by their names in the REST API. */
function More({ entry }: { entry: AuditEntry }) {
  const detail = entry.detail && typeof entry.detail === "object" ? Object.entries(entry.detail) : [];
  const facts = [
    ["action", entry.action],
    ...detail.filter(([, value]) => value !== null && value !== ""),
    ...(entry.times > 1 ? [["from", exact(entry.since)]] : []),
    [entry.times > 1 ? "to" : "at", exact(entry.at)],
  ] as [string, unknown][];
  return (
    <Details>
      <dl className="facts mono small">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt className="muted">{name}</dt>
            <dd>{typeof value === "object" ? JSON.stringify(value) : String(value)}</dd>
          </div>
        ))}
      </dl>
    </Details>
  );
}
