import { get } from "../shared/api";
import { exact, millis } from "../shared/format";
import { useHandover } from "../shared/live";
import { mount } from "../shared/mount";
import { page } from "../shared/page";
import type { Handover } from "../shared/types";
import { HandoverCard, kindWords } from "../shared/ui/handover";
import { Ago, Problem, Skeleton, StatusMark, useLoaded } from "../shared/ui/parts";
import { Frame, Section } from "./frame";

function HandoverPage() {
  const id = page.id ?? window.location.pathname.split("/").filter(Boolean).at(-1) ?? "";
  const pushed = useHandover(id);
  const active = !pushed || pushed.outcome === null;
  const { data, error, reload } = useLoaded(
    `handover ${id}`,
    (signal) => get<Handover>(`/handovers/${encodeURIComponent(id)}`, signal),
    active ? 2000 : undefined,
  );
  const handover = pushed ?? data;
  if (!handover) {
    return (
      <Frame title="Handover">
        {error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={4} height={50} />}
      </Frame>
    );
  }
  const where = `/pipelines/${encodeURIComponent(handover.pipeline)}`;
  return (
    <Frame
      crumbs={[
        [handover.pipeline, `${where}?mode=live`],
        [handover.element, `${where}?mode=live&element=${encodeURIComponent(handover.element)}`],
      ]}
      title={`${kindWords(handover)} to ${handover.target}`}
      state={
        <StatusMark
          status={handover.outcome ?? "moving"}
          word={handover.outcome ?? handover.phase.toLowerCase()}
          pill
        />
      }
    >
      <HandoverCard handover={handover} link={false} />
      <Section title="Phases">
        <div className="card table-wrap">
          <table className="table">
            <thead>
              <tr>
                <th>Phase</th>
                <th>Began</th>
                <th className="num">Took</th>
                <th>Note</th>
              </tr>
            </thead>
            <tbody>
              {handover.timeline.map((phase, index) => (
                <tr key={index}>
                  <td>{phase.phase.toLowerCase()}</td>
                  <td className="muted">{new Date(phase.start_ms).toISOString().slice(11, 23)} UTC</td>
                  <td className="num">
                    {phase.end_ms == null ? "running" : millis(phase.end_ms - phase.start_ms)}
                  </td>
                  <td>{phase.note}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Section>
      <p className="muted small">
        Ordered <Ago at={handover.created_at} /> ({exact(handover.created_at)})
        {handover.group !== handover.element && `, for the group ${handover.group}`}. The gap is the time from
        the last output of the old owner to the first of the new one.
      </p>
    </Frame>
  );
}

mount(<HandoverPage />);
