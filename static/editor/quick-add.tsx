import { useEffect, useRef } from "react";
import { Command } from "cmdk";
import { OperatorIcon } from "../shared/ui/icons";
import type { Pending } from "./canvas";
import { addElement, connect } from "./document";
import { byCategory } from "./palette";
import { commit, current, select, useEditor } from "./store";

/** A stream dropped on empty canvas: choose what shall take it. */
export function QuickAdd({ pending, onClose }: { pending: Pending; onClose: () => void }) {
  const operators = useEditor((state) => state.operators);
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const outside = (event: PointerEvent) => !place.current?.contains(event.target as Node) && onClose();
    window.addEventListener("pointerdown", outside);
    return () => window.removeEventListener("pointerdown", outside);
  }, [onClose]);
  const takers = [...operators.values()].filter((operator) => operator.inputs.length > 0);
  const add = (type: string) => {
    const operator = operators.get(type);
    if (!operator) return;
    const added = addElement(current(), operator, { x: pending.at.x, y: pending.at.y - 46 });
    const to = { element: added.id, port: operator.inputs[0]?.name ?? "in" };
    // one step: an undo takes the element and its stream back together
    commit(connect(added.document, pending.from, to));
    select([added.id]);
    onClose();
  };
  const left = Math.min(pending.screen.x, window.innerWidth - 300);
  const top = Math.min(pending.screen.y, window.innerHeight - 340);
  return (
    <div
      ref={place}
      className="quick-add"
      style={{ left, top }}
      role="dialog"
      aria-label={`Add an element after ${pending.from.element}`}
      onKeyDown={(event) => event.key === "Escape" && onClose()}
    >
      <Command label="Add an element" loop>
        <Command.Input autoFocus placeholder={`After ${pending.from.element}…`} />
        <Command.List>
          <Command.Empty>No element fits.</Command.Empty>
          {byCategory(takers).map(([title, list]) => (
            <Command.Group key={title} heading={title}>
              {list.map((operator) => (
                <Command.Item
                  key={operator.type}
                  value={`${operator.title} ${operator.type}`}
                  onSelect={() => add(operator.type)}
                >
                  <OperatorIcon icon={operator.icon} category={operator.category} />
                  {operator.title}
                </Command.Item>
              ))}
            </Command.Group>
          ))}
        </Command.List>
      </Command>
    </div>
  );
}
