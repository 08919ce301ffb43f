/** The newest lines that a node has logged. They are read on request. */
import { useEffect, useRef, useState } from "react";
import { get } from "../api";
import { exact, instant, plural, toTheSecond } from "../format";
import { roleReason } from "../page";
import { useSettled } from "../settled";
import type { NodeLog, NodeLogLine } from "../types";
import { Ago, Problem, Skeleton, useLoaded } from "./parts";
import "./node-log.css";

const LINES = 200;
const SEARCH_LENGTH_MAX = 200;
const LEVELS = [
  ["DEBUG", "All levels"],
  ["INFO", "Information and worse"],
  ["WARNING", "Warnings and worse"],
  ["ERROR", "Errors only"],
] as const;

/** `path`: of the API, such as /nodes/edge-a/log; `about`: what the lines are about. */
export function NodeLogLines({ path, about }: { path: string; about: string }) {
  const locked = roleReason("operator");
  if (locked) return <p className="muted">Only operators can read logs. {locked}</p>;
  return <Log path={path} about={about} />;
}

function Log({ path, about }: { path: string; about: string }) {
  const [words, setWords] = useState("");
  const [level, setLevel] = useState<string>("DEBUG");
  const search = useSettled(words.trim());
  const query = new URLSearchParams({ limit: String(LINES), level, search }).toString();
  const { data, error, reload } = useLoaded(`${path}?${query}`, (signal) =>
    get<NodeLog>(`${path}?${query}`, signal),
  );
  return (
    <div className="stack stack--tight">
      <div className="row row--wrap" role="group" aria-label="Filter the log">
        <input
          className="input log__search"
          type="search"
          aria-label="Search the log"
          placeholder="Search the log"
          maxLength={SEARCH_LENGTH_MAX}
          value={words}
          onChange={(event) => setWords(event.target.value)}
        />
        <select
          className="select log__level"
          aria-label="Level"
          value={level}
          onChange={(event) => setLevel(event.target.value)}
        >
          {LEVELS.map(([value, title]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
        </select>
        <button type="button" className="button" onClick={reload}>
          Read again
        </button>
      </div>
      {error ? <Problem error={error} onRetry={reload} /> : null}
      {!data && !error && <Skeleton lines={5} />}
      {data && <Lines log={data} about={about} filtered={search !== "" || level !== "DEBUG"} />}
    </div>
  );
}

function Lines({ log, about, filtered }: { log: NodeLog; about: string; filtered: boolean }) {
  const end = useRef<HTMLDivElement>(null);
  // the newest line is what one came for
  useEffect(() => {
    if (end.current) end.current.scrollTop = end.current.scrollHeight;
  }, [log]);
  return (
    <>
      <p className="muted small" role="status">
        {countWords(log)}, read from {log.node} <Ago at={log.at} />. It keeps its newest lines since{" "}
        {exact(log.since)}; older ones are in its file.
      </p>
      {log.lines.length === 0 ? (
        <p className="muted">
          {filtered ? "No line matches." : `${log.node} has logged nothing about ${about} since then.`}
        </p>
      ) : (
        <div className="log" ref={end} tabIndex={0} role="region" aria-label={`Log of ${log.node}`}>
          <ol className="log__lines">
            {log.lines.map((line, place) => (
              <Line key={`${line.at}/${place}`} line={line} />
            ))}
          </ol>
        </div>
      )}
    </>
  );
}

const countWords = ({ lines, matching }: NodeLog): string =>
  lines.length < matching
    ? `The newest ${lines.length} of ${plural(matching, "line")}`
    : plural(matching, "line");

function Line({ line }: { line: NodeLogLine }) {
  const [message = "", ...more] = line.text.split("\n");
  const time_ms = instant(line.at);
  return (
    <li className="log__line" data-level={line.level}>
      <time dateTime={line.at ?? undefined} title={exact(line.at)}>
        {time_ms === null ? "" : toTheSecond(time_ms)}
      </time>
      <span className="log__word">{line.level.toLowerCase()}</span>
      <span className="log__text" title={line.logger}>
        {message}
        {more.length > 0 && (
          <details>
            <summary>Traceback</summary>
            <pre className="code">{more.join("\n")}</pre>
          </details>
        )}
      </span>
    </li>
  );
}
