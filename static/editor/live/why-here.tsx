import { useState } from "react";
import { elementPath, get } from "../../shared/api";
import type { LiveElement, WhyHere as Why } from "../../shared/types";
import { Details } from "../../shared/ui/details";
import { Ago, Problem, Skeleton, useLoaded } from "../../shared/ui/parts";

/** Why it is on its node: asked for when somebody wants to know, and again when it goes elsewhere. */
export function WhyHere({ pipeline, element }: { pipeline: string; element: LiveElement }) {
  const [open, setOpen] = useState(false);
  if (element.node === null) return null;
  return (
    <Details title="Why is it here?" onToggle={setOpen}>
      {open && <Told key={element.node} pipeline={pipeline} element={element} />}
    </Details>
  );
}

function Told({ pipeline, element }: { pipeline: string; element: LiveElement }) {
  const path = `${elementPath(pipeline, element.id)}/why`;
  const { data, error, reload } = useLoaded(path, (signal) => get<Why>(path, signal));
  if (!data) return error ? <Problem error={error} onRetry={reload} /> : <Skeleton lines={2} />;
  return <Sentence why={data} />;
}

function Sentence({ why }: { why: Why }) {
  return (
    <p className="small">
      {why.sentence}{" "}
      {why.at !== null && (
        <span className="muted">
          <Ago at={why.at} />.
        </span>
      )}{" "}
      {why.handover !== null && <a href={`/handovers/${encodeURIComponent(why.handover)}`}>See the move</a>}
      {why.policy !== null && (
        <>
          {" · "}
          <a href="/policies/">See the policy</a>
        </>
      )}
    </p>
  );
}
