/** The log of messages: what waits, what was sent, and what was not taken. */
import { get } from "../../shared/api";
import { plural } from "../../shared/format";
import type { AlarmMessage, AlarmMessages } from "../../shared/types";
import { Ago, Problem, Skeleton, StatusMark, useLoaded } from "../../shared/ui/parts";
import { messageState, REASON_WORDS } from "./words";

export function Messages() {
  const { data, error, reload } = useLoaded(
    "alarm messages",
    (signal) => get<AlarmMessages>("/alarms/messages", signal),
    3000,
  );
  if (!data) return error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={4} />;
  return (
    <div className="stack">
      <p className="muted">
        {data.waiting ? `${plural(data.waiting, "message")} not sent yet. ` : "No message waits. "}
        {data.repeats
          ? `In the last day, a message may have come twice ${plural(data.repeats, "time")}: both have the same id.`
          : "In the last day, no message came twice."}
      </p>
      {data.messages.length > 0 && <MessageTable messages={data.messages} />}
    </div>
  );
}

export function MessageTable({ messages }: { messages: readonly AlarmMessage[] }) {
  return (
    <div className="table-wrap" tabIndex={0} role="region" aria-label="Messages">
      <table className="table">
        <thead>
          <tr>
            <th>When</th>
            <th>Channel</th>
            <th>Why</th>
            <th>State</th>
            <th>Message</th>
          </tr>
        </thead>
        <tbody>
          {messages.map((message) => (
            <Line key={message.id} message={message} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Line({ message }: { message: AlarmMessage }) {
  const { word, status } = messageState(message);
  return (
    <tr>
      <td className="muted">
        <Ago at={message.sent_at ?? message.created_at} />
      </td>
      <td>{message.channel}</td>
      <td>
        {REASON_WORDS[message.reason]}
        {message.route && <span className="muted"> by {message.route}</span>}
      </td>
      <td>
        <StatusMark status={status} word={word} />
        {message.attempts > 1 && <span className="muted small"> {plural(message.attempts, "attempt")}</span>}
        {message.repeats > 0 && (
          <span className="muted small"> may have come {plural(message.repeats + 1, "time")}</span>
        )}
      </td>
      <td>
        {message.subject || plural(message.alarms.length, "alarm")}
        {message.error && <p className="muted small">{message.error}</p>}
      </td>
    </tr>
  );
}
