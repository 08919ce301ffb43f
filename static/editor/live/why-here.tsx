import { useState } from "react";
import { elementPath, get } from "../../shared/api";
import { latency } from "../../shared/format";
import { freeWords, STATE_WORDS, toNeighbours } from "../../shared/move-cost";
import type { LiveElement, OtherNode, WhyHere as Why } from "../../shared/types";
import { Details } from "../../shared/ui/details";
import { Ago, Problem, Skeleton, useLoaded } from "../../shared/ui/parts";
import "./why-here.css";

/** Why the element is on its node. It is loaded when a user opens it, and again when the element moves. */
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
  return (
    <>
      <Sentence why={data} />
      {data.others.length > 0 && <OtherNodes element={element} others={data.others} />}
    </>
  );
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

/** Why the node takes nothing, else the reasons against it. */
const standing = ({ refusal, warnings }: OtherNode): string =>
  refusal ?? (warnings.length ? warnings.map((each) => `it ${each}`).join("; ") : "can take it");

/** What the element would have on the other nodes, or why it cannot run there. */
function OtherNodes({ element, others }: { element: LiveElement; others: OtherNode[] }) {
  return (
    <div className="table-wrap why-here">
      <table className="table table--tight">
        <caption className="visually-hidden">Other nodes for {element.title}</caption>
        <thead>
          <tr>
            <th>Other nodes</th>
            <th className="num" title="Idle cores of all cores">
              Cores free
            </th>
            <th
              className="num"
              title="Latency one way to the farthest node that it reads from or that reads from it"
            >
              To neighbours
            </th>
            <th title="How much of the element's state the node has">State there</th>
          </tr>
        </thead>
        <tbody>
          {others.map((other) => {
            const ms = toNeighbours(other);
            return (
              <tr key={other.node}>
                <td>
                  <a href={`/nodes/${encodeURIComponent(other.node)}`}>{other.node}</a>
                  <div className="muted">{standing(other)}</div>
                </td>
                <td className="num">{freeWords(other)}</td>
                <td className="num">{ms === null ? "–" : ms === 0 ? "same site" : latency(ms)}</td>
                <td>{STATE_WORDS[other.state]}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
