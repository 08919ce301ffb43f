import { useRef } from "react";
import { useNow } from "../shared/clock";
import { livePage } from "../shared/address";
import { get } from "../shared/api";
import { bytes, exact, millis, seconds, timeOfDay } from "../shared/format";
import { durationOf, kindWords, later, phaseRows, phaseTitle, phaseWords } from "../shared/handovers";
import { useHandover, useLive } from "../shared/live";
import { nameIn } from "../shared/live-reducer";
import { mount } from "../shared/mount";
import { measuredRows, pauseTold } from "../shared/pause";
import { page } from "../shared/page";
import type { Handover } from "../shared/types";
import { HandoverCard, HandoverMark } from "../shared/ui/handover";
import { Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { Frame, Section } from "../shared/ui/frame";
import "./monitor.css";

function HandoverPage() {
  const id = page.id ?? "";
  const newest = useRef<Handover | undefined>(undefined);
  const pushed = useHandover(id);
  const ended = newest.current?.outcome != null;
  const { data, error, reload } = useLoaded(
    `handover ${id}`,
    (signal) => get<Handover>(`/handovers/${encodeURIComponent(id)}`, signal),
    ended ? undefined : 2000,
  );
  // what was seen once is never taken back by an older answer
  newest.current = later(later(pushed, data), newest.current);
  const handover = newest.current;
  const name = useLive(({ elements }) =>
    handover ? nameIn(elements, handover.pipeline, handover.element) : "",
  );
  const group = useLive(({ elements }) =>
    handover ? nameIn(elements, handover.pipeline, handover.group) : "",
  );
  if (!handover) {
    return (
      <Frame title="Handover">
        {error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={4} height={50} />}
      </Frame>
    );
  }
  return (
    <Frame
      crumbs={[
        [handover.pipeline, livePage(handover.pipeline)],
        [name, livePage(handover.pipeline, handover.element)],
      ]}
      title={`${kindWords(handover)} to ${handover.target}`}
      state={<HandoverMark handover={handover} pill />}
    >
      <HandoverCard handover={handover} link={false} />
      <Section title="Phases">
        <Phases handover={handover} />
      </Section>
      <Section title="Details">
        <Measured handover={handover} />
      </Section>
      <p className="muted small">
        Ordered by {handover.created_by ?? "Fogline itself"} on {exact(handover.created_at)}
        {handover.group !== handover.element && `, for the elements that run as one (${group})`}.
      </p>
    </Frame>
  );
}

/** What the pause was computed from, by the broker's clock. */
function Measured({ handover }: { handover: Handover }) {
  return (
    <div className="card card__body stack stack--tight">
      <p className="muted small">{pauseTold(handover).why}</p>
      <dl className="measured">
        {measuredRows(handover).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="num">{value}</dd>
          </div>
        ))}
        {handover.strategy === "standby" && (
          <div title="Messages to the broker and back that the new owner waited for, from the commit that handed over to its first">
            <dt>Round trips to the broker during the handover</dt>
            <dd className="num">{handover.round_trips ?? "not known"}</dd>
          </div>
        )}
      </dl>
    </div>
  );
}

function Phases({ handover }: { handover: Handover }) {
  const now = useNow();
  return (
    <div className="card table-wrap">
      <table className="table phases">
        <thead>
          <tr>
            <th>Phase</th>
            <th className="num">Began</th>
            <th className="num">Took</th>
            <th className="num">Bytes</th>
            <th>What happens</th>
          </tr>
        </thead>
        <tbody>
          {phaseRows(handover).map((row, index) => {
            const took = durationOf(row, now);
            return (
              <tr
                key={index}
                className={`phases__row--${row.state}`}
                aria-current={row.state === "active" ? "step" : undefined}
              >
                <td>
                  {phaseTitle(row.phase)}
                  {row.state === "active" && <span className="visually-hidden"> (now)</span>}
                  {row.state === "skipped" && <span className="visually-hidden"> (not reached)</span>}
                </td>
                <td className="num muted phases__began" title={exact(row.start_ms)}>
                  {row.start_ms === null ? "–" : timeOfDay(row.start_ms)}
                </td>
                <td className="num">
                  {took === null ? "–" : row.state === "active" ? seconds(took) : millis(took)}
                </td>
                <td className={`num${row.bytes === null ? " phases__none" : ""}`}>
                  {row.bytes === null ? "–" : bytes(row.bytes)}
                </td>
                <td className="phases__what">
                  {phaseWords(handover, row)}
                  {row.note && <span className="muted small phases__note">{row.note}</span>}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

mount(<HandoverPage />);
