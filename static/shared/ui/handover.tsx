import { ArrowRight, CircleCheck, CircleX, LoaderCircle, Undo2 } from "lucide-react";
import { cancelHandover, moveBack, moveBackRefusal } from "../actions";
import { useNow } from "../clock";
import { bytes, millis, seconds, timeOfDay } from "../format";
import {
  activePhase,
  afterCancel,
  axisSpan,
  cancelling,
  cancelRefusal,
  durationOf,
  kindWords,
  phaseRows,
  phaseTitle,
  phaseWords,
  strategyWords,
  wayBack,
  type PhaseRow,
} from "../handovers";
import { useElement, useLive, useName } from "../live";
import { roleReason } from "../page";
import { copiedTold, pauseTold, type Told } from "../pause";
import { mayRun } from "../status";
import type { Handover } from "../types";
import { Details, Term, TermList } from "./details";
import { ErrorCode } from "./error-code";
import { StatusMark, Tip } from "./parts";
import "./handover.css";

export function HandoverMark({ handover, pill }: { handover: Handover; pill?: boolean }) {
  return (
    <StatusMark
      status={handover.outcome ?? "moving"}
      word={handover.outcome ?? phaseTitle(handover.phase)}
      pill={pill}
    />
  );
}

/** `whole`: on the handover's own page, which shows the times and figures itself. */
export function HandoverCard({ handover, whole = false }: { handover: Handover; whole?: boolean }) {
  const active = handover.outcome === null;
  const name = useName(handover.pipeline, handover.element);
  const Icon = active ? LoaderCircle : handover.outcome === "done" ? CircleCheck : CircleX;
  return (
    <section
      className={`handover handover--${handover.outcome ?? "active"}`}
      // the time tells those of one element apart
      aria-label={`${kindWords(handover)} of ${name}, ${timeOfDay(Date.parse(handover.created_at))}`}
    >
      <header className="handover__head">
        <Icon className={active ? "spin" : ""} aria-hidden="true" />
        <b>{kindWords(handover)}</b>
        <span className="handover__way">
          <span>{handover.origin || "checkpoint"}</span>
          <ArrowRight aria-label="to" />
          <span>{handover.target}</span>
        </span>
        <span className="spring" />
        {active ? <CancelButton handover={handover} /> : <BackButton handover={handover} />}
        {!whole && (
          <a className="small handover__details" href={`/handovers/${encodeURIComponent(handover.id)}`}>
            Details
          </a>
        )}
      </header>
      <Now handover={handover} />
      <ErrorCode code={handover.code} />
      {active && handover.reason && <p className="muted small">Ordered {handover.reason}.</p>}
      {!whole && <Timeline handover={handover} />}
      {!whole && <Facts handover={handover} />}
      {!whole && handover.strategy === "standby" && handover.round_trips !== null && (
        <Details title="More">
          <TermList>
            <Term term="round_trips">{handover.round_trips}</Term>
          </TermList>
        </Details>
      )}
    </section>
  );
}

/** What happens now; when it is over, how it ended. Always there, so that nothing below it moves. */
function Now({ handover }: { handover: Handover }) {
  const row = activePhase(handover);
  const text = row
    ? `${phaseWords(handover, row)}.`
    : handover.message || OUTCOMES[handover.outcome ?? "done"];
  return (
    <p
      className={`handover__now ${handover.outcome === "failed" ? "handover__wrong" : ""}`}
      role={handover.outcome === "failed" ? "alert" : "status"}
    >
      {text}
    </p>
  );
}

const OUTCOMES = { done: "Done.", failed: "It failed.", cancelled: "Cancelled." };

function CancelButton({ handover }: { handover: Handover }) {
  const up = useLive((state) => state.nodes.some((node) => node.name === handover.origin && mayRun(node)));
  const after = afterCancel(handover, useName(handover.pipeline, handover.element), up);
  const refused = roleReason("operator") ?? cancelRefusal(handover);
  return (
    <Tip text={refused ?? after}>
      <button
        type="button"
        className="button button--small"
        aria-disabled={!!refused}
        onClick={() => !refused && void cancelHandover(handover, after)}
      >
        {cancelling(handover) ? "Cancelling…" : "Cancel"}
      </button>
    </Tip>
  );
}

function BackButton({ handover }: { handover: Handover }) {
  const element = useElement(handover.pipeline, handover.element);
  const node = useLive((state) => state.nodes.find((each) => each.name === handover.origin));
  const back = wayBack(handover, element);
  if (!back || !element) return null;
  const refused = moveBackRefusal(element, node);
  const hint = back.instant
    ? `${back.target} still follows as a standby, so nothing is copied`
    : `Live migration to ${back.target}`;
  return (
    <Tip text={refused ?? hint}>
      <button
        type="button"
        className="button button--small"
        aria-disabled={!!refused}
        onClick={() => !refused && void moveBack(handover.pipeline, element, back)}
      >
        <Undo2 aria-hidden="true" />
        Move back
      </button>
    </Tip>
  );
}

function Facts({ handover }: { handover: Handover }) {
  return (
    <dl className="handover__facts num">
      <Fact name="Pause" told={pauseTold(handover)} />
      <Fact name="Copied" told={copiedTold(handover)} />
      <div>
        <dt>How</dt>
        <dd>{strategyWords(handover.strategy)}</dd>
      </div>
    </dl>
  );
}

/** A figure with an explanation of how it was computed, on hover and on focus. */
function Fact({ name, told }: { name: string; told: Told }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Tip text={told.why || null}>
          <span className={told.known ? "explained" : "explained handover__later"} tabIndex={0}>
            {told.value}
          </span>
        </Tip>
        {told.note && <p className="handover__note">{told.note}</p>}
      </dd>
    </div>
  );
}

/** Phases as bars on one time axis, with their times in words. */
function Timeline({ handover }: { handover: Handover }) {
  const now = useNow();
  const rows = phaseRows(handover);
  const begin = Math.min(...rows.flatMap((row) => row.start_ms ?? []));
  const ends = rows.map((row) => (row.start_ms ?? begin) + (durationOf(row, now) ?? 0));
  const span = axisSpan(Math.max(...ends) - begin);
  return (
    <ol className="timeline" aria-label="Phases">
      {rows.map((row, index) => (
        <PhaseLine key={index} handover={handover} row={row} begin={begin} span={span} now={now} />
      ))}
    </ol>
  );
}

function PhaseLine({
  handover,
  row,
  begin,
  span,
  now,
}: {
  handover: Handover;
  row: PhaseRow;
  begin: number;
  span: number;
  now: number;
}) {
  const took = durationOf(row, now);
  const left = row.start_ms === null ? 0 : Math.min(98.5, ((row.start_ms - begin) / span) * 100);
  const width = Math.min(100 - left, Math.max(1.5, ((took ?? 0) / span) * 100));
  return (
    <li
      className={`timeline__row timeline__row--${row.state}`}
      aria-current={row.state === "active" ? "step" : undefined}
      title={[phaseWords(handover, row), row.note].filter(Boolean).join(". ")}
    >
      <span className="timeline__name">{phaseTitle(row.phase)}</span>
      <span className="timeline__track" aria-hidden="true">
        {took !== null && <span className="timeline__bar" style={{ left: `${left}%`, width: `${width}%` }} />}
      </span>
      <span className="timeline__time num">
        {row.bytes ? <span className="muted timeline__bytes">{bytes(row.bytes)} · </span> : null}
        {took === null ? "–" : row.state === "active" ? seconds(took) : millis(took)}
      </span>
    </li>
  );
}
