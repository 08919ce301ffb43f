import { useMemo, useState, type KeyboardEvent } from "react";
import { Search } from "lucide-react";
import { roleReason } from "../shared/page";
import { matchScore } from "../shared/synonyms";
import type { Operator } from "../shared/types";
import { OperatorIcon } from "../shared/ui/icons";
import { useEditor } from "./store";

const CATEGORIES: readonly [string, string][] = [
  ["sources", "Sources"],
  ["transform", "Transform"],
  ["state", "State"],
  ["join", "Join and merge"],
  ["alert", "Alert"],
  ["sinks", "Sinks"],
];

export const DRAG_TYPE = "application/fogline-operator";

const scoreOf = ({ title, type, summary, category }: Operator, words: string): number =>
  matchScore(title, [type, summary, category], words);

/** Those that match, best first. */
export function ranked(operators: Iterable<Operator>, words: string): Operator[] {
  return [...operators]
    .map((operator) => ({ operator, score: scoreOf(operator, words) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ operator }) => operator);
}

/** Operators by category in drawing order; those of unknown categories come last. */
export function byCategory(operators: Operator[]): [string, Operator[]][] {
  const known = CATEGORIES.map(
    ([id, title]) =>
      [title, operators.filter((operator) => operator.category === id)] as [string, Operator[]],
  );
  const others = operators.filter((operator) => !CATEGORIES.some(([id]) => id === operator.category));
  return [...known, ["Other", others] as [string, Operator[]]].filter(([, list]) => list.length > 0);
}

/** Search first; arrows walk the list, Enter adds, dragging places. */
export function Palette({ onAdd }: { onAdd: (type: string) => void }) {
  const operators = useEditor((state) => state.operators);
  const [words, setWords] = useState("");
  const groups = useMemo(
    () => byCategory([...operators.values()].filter((operator) => scoreOf(operator, words) > 0)),
    [operators, words],
  );
  const first = words ? ranked(operators.values(), words)[0] : undefined;
  const walk = (event: KeyboardEvent<HTMLElement>) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const items = [...event.currentTarget.querySelectorAll<HTMLElement>("input, .palette-item")];
    const next =
      items[items.indexOf(document.activeElement as HTMLElement) + (event.key === "ArrowDown" ? 1 : -1)];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  };
  const locked = roleReason("editor");
  const add = (type: string) => {
    setWords("");
    onAdd(type);
  };
  return (
    <aside className="panel panel--palette" aria-label="Elements" onKeyDown={walk}>
      <h2 className="visually-hidden">Elements</h2>
      <div className="palette-search">
        <Search aria-hidden="true" />
        <input
          className="input"
          type="search"
          id="palette-search"
          placeholder="Search elements"
          aria-label="Search elements"
          value={words}
          onChange={(event) => setWords(event.target.value)}
          onKeyDown={(event) => event.key === "Enter" && first && !locked && add(first.type)}
        />
        <kbd className="kbd">/</kbd>
      </div>
      <div className="palette-list">
        {groups.map(([title, list]) => (
          <section key={title} aria-label={title}>
            <h3 className="palette-group">{title}</h3>
            {list.map((operator) => (
              <Item
                key={operator.type}
                operator={operator}
                first={operator === first}
                locked={locked}
                onAdd={add}
              />
            ))}
          </section>
        ))}
        {groups.length === 0 && (
          <p className="muted small palette-none">
            {operators.size ? `No element matches “${words}”.` : "The element library is empty."}
          </p>
        )}
      </div>
      <p className="palette-foot muted small">
        {locked ?? "Drag an element onto the canvas, or press Enter to add it."}
      </p>
    </aside>
  );
}

function Item({
  operator,
  first,
  locked,
  onAdd,
}: {
  operator: Operator;
  /** the one that Enter adds */
  first: boolean;
  locked: string | null;
  onAdd: (type: string) => void;
}) {
  return (
    <button
      type="button"
      className={`palette-item${first ? " palette-item--first" : ""}`}
      draggable={!locked}
      aria-description={operator.summary}
      title={locked ?? undefined}
      disabled={!!locked}
      data-category={operator.category}
      // a double click is meant as one
      onClick={(event) => event.detail < 2 && onAdd(operator.type)}
      onDragStart={(event) => {
        event.dataTransfer.setData(DRAG_TYPE, operator.type);
        event.dataTransfer.effectAllowed = "copy";
      }}
    >
      <span className="op-icon" data-category={operator.category}>
        <OperatorIcon icon={operator.icon} category={operator.category} />
      </span>
      <span className="palette-item__text">
        <span className="palette-item__title">{operator.title}</span>
        <span className="palette-item__summary" aria-hidden="true">
          {operator.summary}
        </span>
      </span>
    </button>
  );
}
