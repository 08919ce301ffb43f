import { Dialog } from "../shared/ui/dialog";
import { KEYBOARD, keyboardMap } from "./keyboard";

type Row = readonly [what: string, keys: string];

/** Keys that are not the editor's own but work in it. */
const MORE: Row[] = [
  ["Run a command or jump to anything", "Ctrl K"],
  ["To the next card, and to the selected card's ports", "Tab"],
  ["On a port: choose what to connect it to", "Enter"],
  ["Move the selected elements; with Shift in larger steps", "← ↑ → ↓"],
  ["Select several", "Shift click"],
  ["Open the menu of an element, a stream or the canvas", "Right click, or Shift F10"],
  ["Pan", "drag"],
];

export function KeyboardMap() {
  const open = keyboardMap.useOpen();
  return (
    <Dialog open={open} onClose={keyboardMap.close} title="Keyboard map" size="l">
      <div className="key-map">
        {KEYBOARD.map(([title, bindings]) => (
          <Keys
            key={title}
            title={title}
            rows={bindings.flatMap(({ title, keys }): Row[] => (keys ? [[title, keys]] : []))}
          />
        ))}
        <Keys title="Get around" rows={MORE} />
      </div>
    </Dialog>
  );
}

function Keys({ title, rows }: { title: string; rows: Row[] }) {
  return (
    <section className="stack stack--tight">
      <h3 className="section-title">{title}</h3>
      <dl className="keys">
        {rows.map(([what, keys]) => (
          <div key={what}>
            <dt>{what}</dt>
            <dd>
              <kbd className="kbd">{keys}</kbd>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
