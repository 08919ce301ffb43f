/** What lies at one place of a system, as a list; what is opened has its own list below it. */
import { useContext, useId, createContext } from "react";
import { ChevronDown, ChevronRight } from "lucide-react";
import { sentence } from "../../shared/format";
import type { FoundThing } from "../../shared/types";
import { below, kindWords, matching, valueWords, type Above, type Branches } from "./found";

interface Listed {
  branches: Branches;
  open: ReadonlySet<string>;
  ticked: ReadonlyMap<string, FoundThing>;
  /** one thing alone may be ticked */
  single: boolean;
  /** things of a search: each with what it lies in */
  flat: boolean;
  toggle: (thing: FoundThing) => void;
  tick: (thing: FoundThing) => void;
}

export const ListContext = createContext<Listed>({
  branches: {},
  open: new Set(),
  ticked: new Map(),
  single: false,
  flat: false,
  toggle: () => undefined,
  tick: () => undefined,
});

interface LevelProps {
  path: string;
  find: string;
  label: string;
  above?: Above;
}

export function Level({ path, find, label, above = [] }: LevelProps) {
  const { branches } = useContext(ListContext);
  const things = matching(branches, path, find, above);
  return <Things things={things} find={find} label={label} above={[...above, path]} />;
}

interface ThingsProps {
  things: FoundThing[];
  find: string;
  label: string;
  above?: Above;
}

export function Things({ things, find, label, above = [] }: ThingsProps) {
  if (things.length === 0) return null;
  return (
    <ul className="browse__list" aria-label={label}>
      {things.map((each) => (
        <Thing key={each.path} thing={each} find={find} above={above} />
      ))}
    </ul>
  );
}

function Thing({ thing, find, above }: { thing: FoundThing; find: string; above: Above }) {
  const { branches, open, ticked, single, toggle, tick } = useContext(ListContext);
  const id = useId();
  const isLoop = above.includes(thing.path);
  const isOpen = !isLoop && open.has(thing.path);
  const kind = kindWords(thing);
  const value = valueWords(thing);
  const branch = branches[thing.path];
  const place = thing.within.join(" / ");
  return (
    <li>
      <div className="browse__row">
        {thing.inner && !isLoop ? (
          <button
            type="button"
            className="button button--quiet button--icon button--small"
            aria-expanded={isOpen}
            aria-label={`Items in ${thing.title}`}
            onClick={() => toggle(thing)}
          >
            {isOpen ? <ChevronDown aria-hidden="true" /> : <ChevronRight aria-hidden="true" />}
          </button>
        ) : (
          <span className="browse__no-button" />
        )}
        {thing.usable ? (
          <label className="browse__name" htmlFor={id}>
            <input
              id={id}
              type={single ? "radio" : "checkbox"}
              name={single ? "browse" : undefined}
              checked={ticked.has(thing.path)}
              aria-describedby={`${id}-kind ${id}-value`}
              onChange={() => tick(thing)}
            />
            <Name thing={thing} />
          </label>
        ) : (
          <span className="browse__name">
            <Name thing={thing} />
          </span>
        )}
        <span className="browse__kind muted small ellipsis" id={`${id}-kind`} title={kind}>
          {kind}
        </span>
        <span className="browse__value mono small ellipsis" id={`${id}-value`} title={value}>
          {value}
        </span>
      </div>
      {isOpen && branch && (
        <div className="browse__inner">
          {branch.state === "asking" && <p className="muted small">Looking…</p>}
          {branch.state === "refused" && <p className="field__error">{sentence(branch.words)}</p>}
          {branch.state === "there" && branch.things.length === 0 && (
            <p className="muted small">There are no items in it.</p>
          )}
          <Level
            path={thing.path}
            find={below(thing, find)}
            above={above}
            label={`In ${place ? `${place} / ` : ""}${thing.title}`}
          />
        </div>
      )}
    </li>
  );
}

function Name({ thing }: { thing: FoundThing }) {
  const { flat } = useContext(ListContext);
  return (
    <span className="ellipsis" title={thing.path}>
      {flat && thing.within.length > 0 && <span className="muted">{thing.within.join(" / ")} / </span>}
      {thing.title}
    </span>
  );
}
