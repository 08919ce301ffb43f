import { useContext, useEffect, useRef, useState, type ReactNode, type RefObject } from "react";
import { Plus } from "lucide-react";
import { readCondition, writeCondition, type Condition } from "./condition";
import { ConditionRow } from "./condition-row";
import { isComplete, lackOf, swapped, withNewRow, withRow } from "./condition-rows";
import { halfFilled, keepHalf } from "./half-filled";
import { Context, TextControl, type LeafProps } from "./leaves";
import "./condition.css";

interface Held {
  /** the expression that the rows were read from or written to */
  text: string;
  /** as it could be read last */
  condition: Condition | null;
  /** why the expression cannot be shown as rows; null: it is */
  why: string | null;
}

const read = (text: string, before: Condition | null): Held => {
  const { condition, why } = readCondition(text);
  return { text, condition: condition ?? before, why };
};

/** A condition as rows, with its expression below them. A change of either changes the other. */
export function ConditionControl(props: LeafProps) {
  const { field, value, onChange } = props;
  const { readOnly, element } = useContext(Context);
  const text = typeof value === "string" ? value : "";
  const [held, setHeld] = useState((): Held => {
    const half = halfFilled(element, field.path, text);
    return half ? { text, condition: half, why: null } : read(text, null);
  });
  const [typing, setTyping] = useState(false);
  if (held.text !== text) setHeld(read(text, held.condition));

  const change = (next: Condition) => {
    // a condition that lacks a row would let other rows through, so it waits for all of them
    const written = isComplete(next) ? writeCondition(next) : text;
    keepHalf(element, field.path, written, next);
    setHeld({ text: written, condition: next, why: null });
    if (written !== text)
      onChange(written || (field.nullable ? null : field.required ? "" : undefined), field.path);
  };
  // the field does not jump under the hands of somebody who types in it
  const shown = held.why === null || typing ? held.condition : null;
  return (
    <div className="condition">
      {shown && (text || !readOnly) && (
        <div inert={held.why !== null} className={held.why === null ? undefined : "condition__stale"}>
          <Groups condition={shown} change={change} />
        </div>
      )}
      <div className="condition__text" onFocus={() => setTyping(true)} onBlur={() => setTyping(false)}>
        <TextControl {...props} />
      </div>
      {held.why !== null && (
        <p className="field__help">This cannot be shown as rows: {held.why}. Change it as text.</p>
      )}
    </div>
  );
}

interface GroupsProps {
  condition: Condition;
  change: (next: Condition) => void;
}

function Groups({ condition, change }: GroupsProps) {
  const { readOnly, columns } = useContext(Context);
  const { box, focusOn } = useFocus();
  const { inner, groups } = condition;
  const outer = inner === "and" ? "or" : "and";
  const join = (word: "and" | "or", label: string) => (
    <Join word={word} label={label} readOnly={readOnly} swap={() => change(swapped(condition))} />
  );
  const add = (group: number) => {
    focusOn(`[data-row="${group}.${groups[group]?.length ?? 0}"] .condition__row :is(select, input)`);
    change(withNewRow(condition, group, columns));
  };
  const first = groups.map((_, at) => groups.slice(0, at).flat().length);
  const waits = !isComplete(condition);
  return (
    <div className="condition__groups" ref={box}>
      {groups.map((rows, group) => (
        <div key={group} className="condition__part">
          {group > 0 && join(outer, "Groups are joined by")}
          <div className={groups.length > 1 ? "condition__group" : "condition__rows"}>
            {rows.map((row, index) => (
              <div key={index} className="condition__part" data-row={`${group}.${index}`}>
                {index > 0 && join(inner, "Rows are joined by")}
                <ConditionRow
                  row={row}
                  number={(first[group] ?? 0) + index + 1}
                  lack={lackOf(row)}
                  onChange={(next) => change(withRow(condition, group, index, next))}
                  onRemove={() => {
                    focusOn("[data-add]");
                    change(withRow(condition, group, index, null));
                  }}
                  onEnter={() => add(group)}
                />
              </div>
            ))}
            {!readOnly && groups.length > 1 && <Add run={() => add(group)}>Add row</Add>}
          </div>
        </div>
      ))}
      {!readOnly && (
        <div className="condition__adds">
          {groups.length < 2 && <Add run={() => add(0)}>Add row</Add>}
          {groups.length > 0 && <Add run={() => add(groups.length)}>Add group</Add>}
        </div>
      )}
      {waits && <p className="field__help">The expression changes as soon as each row is complete.</p>}
    </div>
  );
}

/** Focuses what a selector finds after the next change. */
function useFocus(): { box: RefObject<HTMLDivElement | null>; focusOn: (selector: string) => void } {
  const box = useRef<HTMLDivElement>(null);
  const wanted = useRef("");
  useEffect(() => {
    const found = wanted.current && box.current?.querySelector<HTMLElement>(wanted.current);
    if (!found) return;
    wanted.current = "";
    found.focus();
  });
  return { box, focusOn: (selector) => (wanted.current = selector) };
}

interface JoinProps {
  word: "and" | "or";
  label: string;
  readOnly: boolean;
  swap: () => void;
}

/** Rows are joined by the one word, and groups by the other. */
function Join({ word, label, readOnly, swap }: JoinProps) {
  return (
    <select
      className="select condition__join"
      aria-label={label}
      value={word}
      disabled={readOnly}
      onChange={swap}
    >
      <option value="and">and</option>
      <option value="or">or</option>
    </select>
  );
}

function Add({ run, children }: { run: () => void; children: ReactNode }) {
  return (
    <button type="button" className="button button--small" data-add="" onClick={run}>
      <Plus aria-hidden="true" />
      {children}
    </button>
  );
}
