import { ArrowRight, CircleCheck, CircleX, LoaderCircle } from "lucide-react";
import { post } from "../api";
import { useNow } from "../clock";
import { bytes, millis } from "../format";
import { roleReason } from "../page";
import type { Handover, Phase } from "../types";
import { toast, toastError } from "./toast";
import "./handover.css";

/** What each phase does, in words. */
const MEANING: Record<string, string> = {
  stop: "The origin finishes its batch, commits and stops",
  copy: "The checkpoint is copied to the target",
  prepare: "The target fetches the newest checkpoint and follows",
  warm: "The target catches up and warms its paths",
  cut: "Ownership passes",
  claim: "The target takes the next epoch",
  finish: "The old copy is tidied",
  restore: "The target starts from the checkpoint",
};

export const kindWords = (handover: Pick<Handover, "kind">) =>
  handover.kind === "restoration" ? "Restoration" : "Live migration";

export async function cancelHandover(id: string): Promise<void> {
  try {
    await post(`/handovers/${encodeURIComponent(id)}/cancel`);
    toast({ tone: "info", title: "Cancelling", text: "The element goes on where it was." });
  } catch (error) {
    toastError("Not cancelled", error);
  }
}

export function HandoverCard({ handover, link = true }: { handover: Handover; link?: boolean }) {
  const active = handover.outcome === null;
  const Icon = active ? LoaderCircle : handover.outcome === "done" ? CircleCheck : CircleX;
  const locked = roleReason("operator");
  return (
    <section
      className={`handover handover--${handover.outcome ?? "active"}`}
      aria-label={`${kindWords(handover)} of ${handover.element}`}
    >
      <header className="handover__head">
        <Icon className={active ? "spin" : ""} aria-hidden="true" />
        <b>{kindWords(handover)}</b>
        <span className="handover__way">
          <span>{handover.origin ?? "checkpoint"}</span>
          <ArrowRight aria-hidden="true" />
          <span>{handover.target}</span>
        </span>
        <span className="spring" />
        {active && (
          <button
            className="button button--small"
            disabled={!handover.cancellable || !!locked}
            title={
              locked ??
              (handover.cancellable
                ? "Still safe: the origin stays the owner"
                : "Too late to cancel: ownership has passed")
            }
            onClick={() => void cancelHandover(handover.id)}
          >
            Cancel
          </button>
        )}
        {link && (
          <a className="small" href={`/handovers/${encodeURIComponent(handover.id)}`}>
            Details
          </a>
        )}
      </header>
      <Timeline handover={handover} />
      <dl className="handover__facts num">
        <div title="From the last output of the old owner to the first of the new one">
          <dt>Gap</dt>
          <dd>
            {handover.gap_ms == null ? (active ? "measuring" : "no output yet") : millis(handover.gap_ms)}
          </dd>
        </div>
        <div>
          <dt>Copied</dt>
          <dd>{bytes(handover.bytes_copied)}</dd>
        </div>
        <div>
          <dt>Strategy</dt>
          <dd>{handover.strategy}</dd>
        </div>
      </dl>
      {handover.message && (
        <p className={`small ${handover.outcome === "failed" ? "handover__wrong" : "muted"}`}>
          {handover.message}
        </p>
      )}
    </section>
  );
}

/** Phases as bars on one time axis, with their times in words. */
export function Timeline({ handover }: { handover: Handover }) {
  const now = useNow();
  const phases = handover.timeline ?? [];
  const begin = Math.min(...phases.map((phase) => phase.start_ms));
  const end = Math.max(
    begin + 1,
    ...phases.map((phase) => phase.end_ms ?? (handover.outcome ? phase.start_ms : now)),
  );
  if (phases.length === 0) return <p className="muted small">Waiting to begin.</p>;
  return (
    <ol className="timeline">
      {phases.map((phase, index) => (
        <PhaseRow
          key={index}
          phase={phase}
          begin={begin}
          end={end}
          active={!handover.outcome && phase.end_ms == null}
          now={now}
        />
      ))}
    </ol>
  );
}

function PhaseRow({
  phase,
  begin,
  end,
  active,
  now,
}: {
  phase: Phase;
  begin: number;
  end: number;
  active: boolean;
  now: number;
}) {
  const until = phase.end_ms ?? (active ? Math.max(now, phase.start_ms) : phase.start_ms);
  const span = end - begin;
  const left = ((phase.start_ms - begin) / span) * 100;
  const width = Math.max(1.5, ((until - phase.start_ms) / span) * 100);
  return (
    <li
      className={`timeline__row${active ? " timeline__row--active" : ""}`}
      title={[MEANING[phase.phase.toLowerCase()], phase.note].filter(Boolean).join(". ")}
    >
      <span className="timeline__name">{phase.phase.toLowerCase()}</span>
      <span className="timeline__track" aria-hidden="true">
        <span
          className="timeline__bar"
          style={{
            left: `${Math.min(left, 98.5)}%`,
            width: `${Math.min(width, 100 - Math.min(left, 98.5))}%`,
          }}
        />
      </span>
      <span className="timeline__time num">
        {millis(until - phase.start_ms)}
        {phase.bytes ? <span className="muted"> · {bytes(phase.bytes)}</span> : null}
      </span>
    </li>
  );
}
