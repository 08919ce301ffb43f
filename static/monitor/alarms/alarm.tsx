/** One alarm with its history, its messages, and where its row came from. */
import { livePage } from "../../shared/address";
import { get } from "../../shared/api";
import { exact, plural } from "../../shared/format";
import { useTrace } from "../../shared/rows/trace";
import type { AlarmMessages, AlarmWithHistory } from "../../shared/types";
import { Dialog } from "../../shared/ui/dialog";
import { Ago, Problem, Skeleton, useLoaded } from "../../shared/ui/parts";
import { AlarmActions } from "./actions";
import { MessageTable } from "./messages";
import { CHANGE_WORDS, STATUS_WORDS, valuesWords } from "./words";

export function AlarmDialog({ id, onClose }: { id: number; onClose: () => void }) {
  const { data, error, reload } = useLoaded(
    `alarm ${id}`,
    (signal) => get<AlarmWithHistory>(`/alarms/${id}`, signal),
    3000,
  );
  return (
    <Dialog open onClose={onClose} size="l" title={data?.title ?? "Alarm"} description={data?.message}>
      {data ? (
        <Whole alarm={data} onDone={reload} />
      ) : error ? (
        <Problem error={error} onRetry={reload} />
      ) : (
        <Skeleton lines={4} />
      )}
    </Dialog>
  );
}

function Whole({ alarm, onDone }: { alarm: AlarmWithHistory; onDone: () => void }) {
  const { trace, dialog } = useTrace(alarm.pipeline ?? "");
  const { row } = alarm;
  const facts: [string, string | null][] = [
    ["State", STATUS_WORDS[alarm.status]],
    ["Severity", alarm.severity],
    ["Key", alarm.key],
    ["Since", exact(alarm.raised_at)],
    ["Raised", alarm.count > 1 ? `${plural(alarm.count, "time")}, last ${exact(alarm.seen_at)}` : null],
    ["Cleared", alarm.cleared_at && exact(alarm.cleared_at)],
    ["Silenced until", alarm.silenced_until && exact(alarm.silenced_until)],
    ["Last values", valuesWords(alarm.values) || null],
    ["Rule", alarm.rule],
    ["Node", alarm.node],
    ["Site", alarm.site],
  ];
  return (
    <div className="stack">
      <dl className="alarm-facts">
        {facts.map(
          ([name, value]) =>
            value && (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ),
        )}
      </dl>
      <div className="row row--wrap">
        <AlarmActions alarm={alarm} onDone={onDone} whole />
        {alarm.pipeline && (
          <a className="button button--small" href={livePage(alarm.pipeline, alarm.element)}>
            {alarm.element ? "Show the element" : "Show the pipeline"}
          </a>
        )}
        {row && alarm.pipeline && (
          <button
            type="button"
            className="button button--small"
            onClick={() => trace(row, alarm.key ?? undefined)}
          >
            Where its row came from
          </button>
        )}
      </div>
      <h3 className="section-title">History</h3>
      <ol className="alarm-history">
        {alarm.changes.map((change, index) => (
          <li key={index}>
            <span className="muted small">
              <Ago at={change.at} />
            </span>
            <span>
              <b>{CHANGE_WORDS[change.kind] ?? change.kind}</b>
              {change.who && ` by ${change.who}`}
              {change.until && ` until ${exact(change.until)}`}
              {change.note && `: ${change.note}`}
            </span>
          </li>
        ))}
      </ol>
      <Told id={alarm.id} />
      {dialog}
    </div>
  );
}

function Told({ id }: { id: number }) {
  const { data } = useLoaded(
    `messages of alarm ${id}`,
    (signal) => get<AlarmMessages>(`/alarms/messages?alarm=${id}`, signal),
    3000,
  );
  if (!data) return null;
  return (
    <>
      <h3 className="section-title">Messages</h3>
      {data.messages.length ? (
        <MessageTable messages={data.messages} />
      ) : (
        <p className="muted">Nobody got a message about it.</p>
      )}
    </>
  );
}
