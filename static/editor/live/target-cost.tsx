import { cores } from "../../shared/format";
import { useNode } from "../../shared/live";
import { sparkHeight, sparkPaths } from "../../shared/points";
import {
  basisOf,
  curve,
  estimate,
  missing,
  placeOf,
  sentenceOf,
  targetWords,
  TICKS_MS,
  type Estimate,
} from "../../shared/target-cost";
import type { LiveElement } from "../../shared/types";
import { Details } from "../../shared/ui/details";
import "./target-cost.css";

const TITLE = "CPU for each latency target";

/** What the element would cost with another latency target, in words, with a folded curve. */
export function TargetCost({ element }: { element: LiveElement }) {
  const estimated = useEstimate(element);
  if (element.latency_ms_target === null) return null;
  return (
    <section aria-label={TITLE}>
      <Details title={estimated ? sentenceOf(estimated) : TITLE}>
        <Drawn element={element} estimated={estimated} />
      </Details>
    </section>
  );
}

/** The same with an open curve, for pages with room. */
export function TargetCostCard({ element }: { element: LiveElement }) {
  const estimated = useEstimate(element);
  if (element.latency_ms_target === null) return null;
  return (
    <section className="stack stack--tight" aria-label={TITLE}>
      <h2 className="section-title">{TITLE}</h2>
      {estimated && <p>{sentenceOf(estimated)}</p>}
      <Drawn element={element} estimated={estimated} />
    </section>
  );
}

function useEstimate(element: LiveElement): Estimate | null {
  return estimate(element, useNode(element.node ?? "")?.cores);
}

function Drawn({ element, estimated }: { element: LiveElement; estimated: Estimate | null }) {
  return (
    <div className="target-cost">
      {estimated && <Curve estimated={estimated} />}
      <p className="muted small">{estimated ? basisOf(element) : missing(element)}</p>
    </div>
  );
}

function Curve({ estimated }: { estimated: Estimate }) {
  const values = curve(estimated);
  const top = Math.max(1e-9, ...values);
  const left = (ms: number) => `${(100 * placeOf(ms, estimated)).toFixed(2)}%`;
  const ticks = TICKS_MS.map((ms) => ({ ms, then: cores(estimated.at(ms)) }));
  const label = ticks.map(({ ms, then }) => `${then} cores at ${targetWords(ms)}`).join(", ");
  const { now, target_ms } = estimated;
  return (
    <div className="target-cost__plot" role="img" aria-label={`Estimated: ${label}`}>
      <div className="target-cost__area">
        <svg viewBox="0 0 100 28" preserveAspectRatio="none" aria-hidden="true">
          {sparkPaths(values, top).map(({ line, area }) => (
            <g key={line}>
              <path d={area} className="spark__area" />
              <path d={line} className="spark__line" vectorEffect="non-scaling-stroke" />
            </g>
          ))}
        </svg>
        <span
          className="target-cost__now"
          data-side={placeOf(target_ms, estimated) > 0.7 ? "left" : "right"}
          style={{ left: left(target_ms), bottom: `${(100 * sparkHeight(now / top)).toFixed(2)}%` }}
        >
          <span className="target-cost__now-word">now, {targetWords(target_ms)}</span>
        </span>
      </div>
      <div className="target-cost__ticks num">
        {ticks.map(({ ms, then }) => (
          <span key={ms} style={{ left: left(ms) }}>
            <b>{then}</b>
            {targetWords(ms)}
          </span>
        ))}
      </div>
    </div>
  );
}
