/** The newest lines that a node has logged, and those that it logs meanwhile. */
import { useLayoutEffect, useRef, useState, type UIEvent } from "react";
import { get } from "../api";
import { exact, instant, plural, toTheSecond } from "../format";
import { roleReason } from "../page";
import { useSettled } from "../settled";
import type { NodeLog, NodeLogLine } from "../types";
import { HoldButton } from "./hold";
import { Ago, Problem, Skeleton, useLoaded } from "./parts";
import "./node-log.css";

const LINES = 200;
const EVERY_MS = 2000;
/** So near to its end the log is followed, px. */
const AT_END_PX = 8;
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
  const [held, setHeld] = useState(false);
  const { data, error, reload } = useLoaded(
    `${path}?${query}`,
    (signal) => get<NodeLog>(`${path}?${query}`, signal),
    held ? undefined : EVERY_MS,
  );
  const hold = (now: boolean) => {
    setHeld(now);
    if (held && !now) reload();
  };
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
        <HoldButton held={held} onHold={hold} className="button" />
      </div>
      {error ? <Problem error={error} onRetry={reload} /> : null}
      {!data && !error && <Skeleton lines={5} />}
      {data && (
        <Lines
          log={data}
          about={about}
          filtered={search !== "" || level !== "DEBUG"}
          held={held}
          onHold={hold}
        />
      )}
    </div>
  );
}

interface LinesProps {
  log: NodeLog;
  about: string;
  filtered: boolean;
  /** the lines stay as they are */
  held: boolean;
  onHold: (held: boolean) => void;
}

/** Scrolling up holds the lines, and scrolling to the end follows again. */
function Lines({ log, about, filtered, held, onHold }: LinesProps) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (box.current && !held) box.current.scrollTop = box.current.scrollHeight;
  }, [log, held]);
  const scrolled = ({ currentTarget: { scrollTop, scrollHeight, clientHeight } }: UIEvent) => {
    const above = scrollHeight - clientHeight - scrollTop > AT_END_PX;
    if (above !== held) onHold(above);
  };
  return (
    <>
      <p className="muted small">
        {countWords(log)}, read from {log.node} <Ago at={log.at} />. It keeps its newest lines since{" "}
        {exact(log.since)}; older ones are in its file.
      </p>
      {log.lines.length === 0 ? (
        <p className="muted" role="status">
          {filtered ? "No line matches." : `${log.node} has logged nothing about ${about} since then.`}
        </p>
      ) : (
        <div
          className="log"
          ref={box}
          tabIndex={0}
          role="region"
          aria-label={`Log of ${log.node}`}
          onScroll={scrolled}
        >
          <ol className="log__lines">
            {keyed(log.lines).map(([key, line]) => (
              <Line key={key} line={line} onRead={() => onHold(true)} />
            ))}
          </ol>
        </div>
      )}
    </>
  );
}

/** A line keeps its key while others come and go, so a traceback that is open stays open. */
function keyed(lines: readonly NodeLogLine[]): [string, NodeLogLine][] {
  const seen = new Map<string, number>();
  return lines.map((line) => {
    const key = `${line.at} ${line.text}`;
    const times = (seen.get(key) ?? 0) + 1;
    seen.set(key, times);
    return [`${key} ${times}`, line];
  });
}

const countWords = ({ lines, matching }: NodeLog): string =>
  lines.length < matching
    ? `The newest ${lines.length} of ${plural(matching, "line")}`
    : plural(matching, "line");

/** `onRead`: its traceback is opened. */
function Line({ line, onRead }: { line: NodeLogLine; onRead: () => void }) {
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
          <details onToggle={({ currentTarget }) => currentTarget.open && onRead()}>
            <summary>Traceback</summary>
            <pre className="code">{more.join("\n")}</pre>
          </details>
        )}
      </span>
    </li>
  );
}
