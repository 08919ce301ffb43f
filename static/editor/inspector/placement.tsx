/** Where an element runs, its latency target, and the elements with which it must not share a node. */
import { Pin, Timer } from "lucide-react";
import { millis } from "../../shared/format";
import { useLive } from "../../shared/live";
import type { DocElement } from "../../shared/types";
import { Details } from "../../shared/ui/details";
import { displayName, elementsOf, isApart } from "../../shared/document";
import { changeElement, setApart } from "../edits";
import { commit, current, useEditor } from "../store";

export function NodePin({ element, editable }: { element: DocElement; editable: boolean }) {
  const nodes = useLive((state) => state.nodes);
  const { node, site } = element;
  const known = (names: string[], own: string | null | undefined) =>
    [...new Set([...names, own ?? ""])].filter(Boolean).sort();
  const names = known(
    nodes.map((each) => each.name),
    node,
  );
  const sites = known(
    nodes.map((each) => each.site),
    site,
  );
  return (
    <label className="field" data-path="node site">
      <span className="field__label row">
        <Pin size={13} aria-hidden="true" /> Node
      </span>
      <select
        className="select"
        disabled={!editable}
        value={node ? `node ${node}` : site ? `site ${site}` : ""}
        onChange={({ target: { value } }) => {
          const [kind, name] = value.split(/ (.*)/s);
          const place = { node: kind === "node" ? name : null, site: kind === "site" ? name : null };
          commit(changeElement(current(), element.id, place));
        }}
      >
        <option value="">Fogline chooses</option>
        {sites.map((name) => (
          <option key={name} value={`site ${name}`}>
            Any node at {name}
          </option>
        ))}
        {names.map((name) => (
          <option key={name} value={`node ${name}`}>
            {name}
          </option>
        ))}
      </select>
      <span className="field__help">
        Where the element runs when the pipeline is deployed. You can move it later while it runs.
      </span>
    </label>
  );
}

const TARGETS_MS = [20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 60_000];

export function LatencyTarget({ element, editable }: { element: DocElement; editable: boolean }) {
  const set = element.latency_ms ?? null;
  const choices = [...new Set([...TARGETS_MS, ...(set === null ? [] : [set])])].sort((a, b) => a - b);
  return (
    <label className="field" data-path="latency_ms">
      <span className="field__label row">
        <Timer size={13} aria-hidden="true" /> Latency target
      </span>
      <select
        className="select"
        disabled={!editable}
        value={set ?? ""}
        onChange={({ target: { value } }) =>
          commit(changeElement(current(), element.id, { latency_ms: value === "" ? null : Number(value) }))
        }
      >
        <option value="">The installation's default</option>
        {choices.map((each) => (
          <option key={each} value={each}>
            {millis(each)}
          </option>
        ))}
      </select>
      <span className="field__help">
        How soon after a row arrives its results should be written. A longer target needs less CPU, because
        more rows are processed together. For elements that run as one, the shortest target counts.
      </span>
    </label>
  );
}

/** The elements that must not share a node with it. It is written at one of the two and holds for both. */
export function Apart({ element, editable }: { element: DocElement; editable: boolean }) {
  const document = useEditor((state) => state.history.present);
  const operators = useEditor((state) => state.operators);
  const others = elementsOf(document).filter((each) => each.id !== element.id);
  if (others.length === 0) return null;
  const chosen = others.filter((each) => isApart(element, each));
  return (
    <Details title={chosen.length ? `Never on one node with (${chosen.length})` : "Never on one node with"}>
      <fieldset className="apart stack stack--tight" data-path="apart" disabled={!editable}>
        <legend className="visually-hidden">Elements that run on another node</legend>
        {others.map((other) => (
          <label className="check" key={other.id}>
            <input
              type="checkbox"
              checked={chosen.includes(other)}
              onChange={(event) => commit(setApart(current(), element.id, other.id, event.target.checked))}
            />
            {displayName(other, operators.get(other.type))}
          </label>
        ))}
        <span className="field__help">
          Fogline does not place the two on one node, so that they do not fail together.
        </span>
      </fieldset>
    </Details>
  );
}
