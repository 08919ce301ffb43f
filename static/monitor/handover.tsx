import { useRef } from "react";
import { useNow } from "../shared/clock";
import { livePage } from "../shared/address";
import { get } from "../shared/api";
import { bytes, exact, millis, seconds, timeOfDay } from "../shared/format";
import { durationOf, kindWords, later, phaseRows, phaseWords } from "../shared/handovers";
import { useHandover } from "../shared/live";
import { mount } from "../shared/mount";
import { page } from "../shared/page";
import type { Handover } from "../shared/types";
import { HandoverCard, HandoverMark } from "../shared/ui/handover";
import { Ago, Problem, Skeleton, useLoaded } from "../shared/ui/parts";
import { Frame, Section } from "./frame";

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
        [handover.element, livePage(handover.pipeline, handover.element)],
      ]}
      title={`${kindWords(handover)} to ${handover.target}`}
      state={<HandoverMark handover={handover} pill />}
    >
      <HandoverCard handover={handover} link={false} />
      <Section title="Phases">
        <Phases handover={handover} />
      </Section>
      <p className="muted small">
        Ordered by {handover.created_by ?? "Fogline itself"} <Ago at={handover.created_at} /> (
        {exact(handover.created_at)})
        {handover.group !== handover.element && `, for the group ${handover.group}`}. The gap is the time from
        the last output of the old owner to the first of the new one.
      </p>
    </Frame>
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
                  {row.phase.toLowerCase()}
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
