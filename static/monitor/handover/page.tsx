import { useRef } from "react";
import { useNow } from "../../shared/clock";
import { livePage } from "../../shared/address";
import { get } from "../../shared/api";
import { bytes, capitalised, exact, millis, seconds, timeOfDay } from "../../shared/format";
import { durationOf, kindWords, later, phaseRows, phaseTitle, phaseWords } from "../../shared/handovers";
import { useHandover, useLive } from "../../shared/live";
import { nameIn } from "../../shared/live-reducer";
import { mount } from "../../shared/mount";
import { copiedTold, measuredRows, pauseTold } from "../../shared/pause";
import { page } from "../../shared/page";
import type { Handover, HandoverDetails } from "../../shared/types";
import { HandoverCard, HandoverMark } from "../../shared/ui/handover";
import { Problem, Skeleton, useLoaded } from "../../shared/ui/parts";
import { Frame, Section } from "../../shared/ui/frame";
import { FormerMoves, spreadWords } from "./former";
import { TracksPicture } from "./tracks-picture";
import "../monitor.css";
import "./handover.css";

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
  const { data: details } = useLoaded(
    `details of handover ${id}, which has ${newest.current?.outcome == null ? "not " : ""}ended`,
    (signal) => get<HandoverDetails>(`/handovers/${encodeURIComponent(id)}/details`, signal),
    newest.current?.outcome === "done" && justEnded(newest.current) ? 2000 : undefined,
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
      <HandoverCard handover={handover} whole />
      <Figures handover={handover} details={details} />
      <Section title="Both nodes over time">
        <TracksPicture handover={handover} written={details?.written ?? null} />
        <p className="muted small">{batchesKnown(handover, details)}</p>
      </Section>
      <Section title="What was waited for">
        <Waited handover={handover} />
      </Section>
      <Section title="Phases">
        <Phases handover={handover} />
      </Section>
      {details && (
        <Section title="Former moves">
          <FormerMoves handover={handover} former={details.former} />
        </Section>
      )}
      <p className="muted small">
        Ordered by {handover.created_by ?? "Fogline itself"} on {exact(handover.created_at)}
        {handover.group !== handover.element && `, for the elements that run as one (${group})`}.
      </p>
    </Frame>
  );
}

/** The figures that one looks for first, each beside how it usually is. */
function Figures({ handover, details }: { handover: Handover; details: HandoverDetails | undefined }) {
  const pause = pauseTold(handover);
  const copied = copiedTold(handover);
  const former = details?.former;
  const figures: [string, string, string][] = [
    [
      "Pause",
      pause.value,
      [pause.note && `${capitalised(pause.note)}.`, former && spreadWords(former.pause_ms, millis)]
        .filter(Boolean)
        .join(" "),
    ],
    ["Getting ready", millis(details?.ready_ms), former ? spreadWords(former.ready_ms, millis) : ""],
    ["Copied", copied.value, copied.known && former ? spreadWords(former.bytes, bytes) : copied.why],
  ];
  if (handover.round_trips !== null)
    figures.push([
      "Round trips",
      String(handover.round_trips),
      "Messages to the broker and back that the new owner waited for, from the release to its first commit",
    ]);
  return (
    <div className="card summary" role="group" aria-label="Figures of this move">
      {figures.map(([name, value, how]) => (
        <div key={name} className="figure">
          <span className="figure__label">{name}</span>
          <span className="figure__value num">{value}</span>
          <span className="muted small figure__how">{how}</span>
        </div>
      ))}
    </div>
  );
}

const JUST_ENDED_MS = 20_000;

function batchesKnown(handover: Handover, details: HandoverDetails | undefined): string {
  if (details?.written)
    return "Each bar is a batch: from when its oldest row came until it was committed, by the broker's clock. Phases are by the control process's clock. Drag over the picture to see a part of it.";
  if (handover.outcome === null) return "Batches are shown when the move has ended.";
  if (handover.outcome !== "done") return "Ownership did not change as ordered, so no batches are shown.";
  return justEnded(handover)
    ? "The batches are being read from the journal."
    : "The batches around the cut are not known: the journal could not be read in time.";
}

const justEnded = (handover: Handover): boolean =>
  handover.ended_at !== null && Date.now() - Date.parse(handover.ended_at) < JUST_ENDED_MS;

/** What the pause consists of, by the broker's clock. */
function Waited({ handover }: { handover: Handover }) {
  return (
    <div className="card card__body stack stack--tight">
      <p className="muted small">{pauseTold(handover).why}</p>
      {handover.pause && (
        <dl className="measured">
          {measuredRows(handover).map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd className="num">{value}</dd>
            </div>
          ))}
        </dl>
      )}
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
