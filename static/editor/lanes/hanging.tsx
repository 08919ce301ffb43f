/** What a move will take while it hangs over a lane, and the question whether to do it. */
import { Fragment, useEffect, useRef, useState } from "react";
import { forecastPath, groupNote } from "../../shared/actions";
import { get } from "../../shared/api";
import { Asker } from "../../shared/asker";
import { expectRows, type ExpectRow, type MoveWay } from "../../shared/forecast";
import { plural } from "../../shared/format";
import { useElements, useLive } from "../../shared/live";
import { costRows, totalRows, type CostRow, type Moving } from "../../shared/move-cost";
import { nameOf } from "../../shared/status";
import type { Forecast, LiveElement } from "../../shared/types";
import { useEditor } from "../store";
import { focusCard } from "../view";
import { confirmMoves, goingTo, liesOn, nodeOf, unitRefusal, wordsOf } from "./dropping";
import type { Lane } from "./layout";
import { choose, letGo, setAtOnce, useLanes, type Hanging } from "./store";
import type { Unit } from "./units";

/** The forecasts of what hangs, asked for once, when it begins to hang; by the element for which it is moved. */
function useForecasts(pipeline: string, units: readonly Unit[]): Record<string, Forecast> {
  const [found, setFound] = useState<Record<string, Forecast>>({});
  const leads = units.map(({ lead }) => lead).join("\n");
  useEffect(() => {
    setFound({});
    const askers = leads.split("\n").map((lead) => {
      const asker = new Asker();
      asker.again(
        (signal) => get<Forecast>(forecastPath(pipeline, lead), signal),
        (forecast) => setFound((before) => ({ ...before, [lead]: forecast })),
        () => undefined, // the move is possible without it
      );
      return asker;
    });
    return () => askers.forEach((asker) => asker.stop());
  }, [pipeline, leads]);
  return found;
}

export const wayOf = (element: LiveElement | undefined): MoveWay =>
  element?.follow === "none" ? "stop-and-copy" : "standby";

export function HangingPanel({ lanes }: { lanes: readonly Lane[] }) {
  const hanging = useLanes((state) => state.hanging);
  const live = useEditor((state) => state.mode === "live");
  if (!hanging || !live) return null;
  return <Panel hanging={hanging} lanes={lanes} />;
}

function Panel({ hanging, lanes }: { hanging: Hanging; lanes: readonly Lane[] }) {
  const pipeline = useEditor((state) => state.name);
  const elements = useElements(pipeline);
  const { units, over, stage } = hanging;
  const forecasts = useForecasts(pipeline, units);
  const target = nodeOf(over);
  const chosen = stage === "chosen";
  const button = useRef<HTMLButtonElement>(null);
  const [first] = units;
  useEffect(() => {
    if (!chosen) return;
    button.current?.focus();
    const lead = first?.lead;
    return () => {
      if (lead) focusCard(lead);
    };
  }, [chosen, first]);
  // the nodes may change while it hangs
  useLive((state) => state.nodes);
  const elementOf = (unit: Unit) => elements.find(({ id }) => id === unit.lead);
  const going = target === null ? [] : goingTo(units, target);
  const what =
    units.length === 1 && first
      ? wordsOf(first)
      : plural(units.flatMap(({ members }) => members).length, "element");
  const refused = target !== null && going.length === 0 ? refusalOf(units, target) : null;
  const press = (event: React.KeyboardEvent) => {
    const step = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") letGo();
    else if (step) choose(units, stepped(lanes, over, step));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <section
      className={`hanging hanging--${stage}`}
      role={chosen ? "dialog" : "region"}
      aria-label={target === null ? `Move ${what}` : `Move ${what} to ${target}`}
      aria-describedby="hanging-text"
      onKeyDown={chosen ? press : undefined}
    >
      <h2 className="hanging__title">{target === null ? `Move ${what}` : `Move ${what} to ${target}`}</h2>
      <div id="hanging-text" className="stack stack--tight">
        {target !== null &&
          units.map((unit, index) => (
            <UnitRows
              key={unit.lead}
              place={units.length > 1 ? index + 1 : null}
              unit={unit}
              element={elementOf(unit)}
              target={target}
              forecast={forecasts[unit.lead]}
            />
          ))}
        {target !== null && going.length > 1 && (
          <Facts
            rows={totalRows(
              going.map((unit) => movingOf(elementOf(unit), forecasts[unit.lead])),
              target,
            )}
          />
        )}
        {target === null && <p className="hanging__note">Hold it over the lane of a node.</p>}
        {refused && target !== null && (
          <p className={liesOn(units, target) ? "hanging__note" : "hanging__refused"}>{refused}</p>
        )}
        {first && units.length === 1 && target !== null && !refused && (
          <p className="hanging__note">{noteOf(pipeline, elementOf(first))}</p>
        )}
      </div>
      {chosen && (
        <footer className="hanging__foot">
          <AtOnce />
          <button type="button" className="button" onClick={letGo}>
            Cancel <kbd className="kbd">Esc</kbd>
          </button>
          <button
            ref={button}
            type="button"
            className="button button--primary"
            aria-disabled={!!refused}
            onClick={() => !refused && target !== null && confirmMoves(units, target)}
          >
            Move to {target} <kbd className="kbd">Enter</kbd>
          </button>
        </footer>
      )}
    </section>
  );
}

/** The lane `step` further, of those of nodes; the first or the last one goes on with the other. */
function stepped(lanes: readonly Lane[], from: string | null, step: number): string {
  const nodes = lanes.filter(({ kind }) => kind === "node").map(({ key }) => key);
  const at = nodes.indexOf(from ?? "");
  return nodes[(at + step + nodes.length) % nodes.length] ?? from ?? "";
}

/** The lane that is chosen first by keyboard: the next one that takes it. */
export function firstLane(lanes: readonly Lane[], units: readonly Unit[], from: string): string {
  let key = from;
  for (let turn = 0; turn < lanes.length; turn += 1) {
    key = stepped(lanes, key, 1);
    const node = nodeOf(key);
    if (node !== null && goingTo(units, node).length > 0) return key;
  }
  return stepped(lanes, from, 1);
}

function refusalOf(units: readonly Unit[], target: string): string {
  const [first] = units;
  return (first && unitRefusal(first, target)) ?? "";
}

function noteOf(pipeline: string, element: LiveElement | undefined): string {
  if (!element) return "";
  const how =
    wayOf(element) === "standby"
      ? `${nameOf(element)} keeps running on ${element.node ?? "its node"} until then.`
      : `${nameOf(element)} stops for that time: ${element.follow_note}`;
  return `${how} Nothing is lost or repeated, and you can move it back.${groupNote(pipeline, element)}`;
}

/** How long one move takes; when it is the only one, also what it costs. */
function UnitRows({
  place,
  unit,
  element,
  target,
  forecast,
}: {
  place: number | null;
  unit: Unit;
  element: LiveElement | undefined;
  target: string;
  forecast: Forecast | undefined;
}) {
  const refused = unitRefusal(unit, target);
  if (!element || (place === null && refused)) return null;
  const way = wayOf(element);
  const rows = expectRows(forecast, target, way, nameOf(element)) ?? [];
  const warnings = forecast?.nodes[target]?.warnings ?? [];
  if (place !== null)
    return (
      <p className="hanging__line">
        <b>
          {place}. {wordsOf(unit)}
        </b>{" "}
        {refused ?? (rows.length ? rows.map(short).join(", ") : "…")}
        {warnings.map((warning) => (
          <span key={warning} className="hanging__warning">
            {target} {warning}.
          </span>
        ))}
      </p>
    );
  const facts: Fact[] = [...rows, ...costRows(forecast, target, way, element.node)];
  return (
    <>
      {facts.length === 0 ? (
        <dl className="hanging__facts">
          <dt>Getting ready</dt>
          <dd className="muted">{forecast ? `Nothing is known about ${target}.` : "…"}</dd>
        </dl>
      ) : (
        <Facts rows={facts} />
      )}
      {warnings.length > 0 && (
        <ul className="plain-list hanging__warnings">
          {warnings.map((warning) => (
            <li key={warning}>
              {target} {warning}.
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

interface Fact extends CostRow {
  note?: string;
}

function Facts({ rows }: { rows: readonly Fact[] }) {
  return (
    <dl className="hanging__facts">
      {rows.map(({ title, value, note }, at) => (
        <Fragment key={at}>
          <dt>{title}</dt>
          <dd className="num">
            {value}
            {note && <span className="hanging__basis">{note}</span>}
          </dd>
        </Fragment>
      ))}
    </dl>
  );
}

const movingOf = (element: LiveElement | undefined, forecast: Forecast | undefined): Moving => ({
  origin: element?.node ?? "",
  way: wayOf(element),
  forecast,
});

const short = ({ title, value }: ExpectRow): string => `${title.toLowerCase()} ${value}`;

/** Whether a drop moves at once from now on. */
function AtOnce() {
  const atOnce = useLanes((state) => state.atOnce);
  return (
    <label className="check hanging__once">
      <input type="checkbox" checked={atOnce} onChange={(event) => setAtOnce(event.target.checked)} />
      Do not ask after a drop
    </label>
  );
}
