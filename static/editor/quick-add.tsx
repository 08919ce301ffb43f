import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { Command } from "cmdk";
import { Unplug } from "lucide-react";
import { create } from "zustand";
import type { DocElement, Operator, PipelineDocument } from "../shared/types";
import { OperatorIcon } from "../shared/ui/icons";
import type { Mend } from "./columns";
import { judge } from "./connect";
import {
  displayName,
  elementsOf,
  findElement,
  formatReference,
  nameOfId,
  parseReference,
  placeOf,
  portName,
  streamName,
  type PortRef,
} from "../shared/document";
import { addElement, connect, disconnect } from "./edits";
import { portsOf } from "./flow";
import { byCategory, ranked } from "./palette";
import { CARD, type Point } from "./places";
import { commit, current, select, useEditor } from "./store";
import { canvasBox, focusCard } from "./view";

/** A port for which the other end of a stream is wanted. */
interface Choice {
  port: PortRef;
  side: "in" | "out";
  /** where a new element goes, and where the list opens, in pixels of the window */
  at: Point;
  screen: Point;
  /** false when it was dropped on the empty canvas, so that only a new element is meant */
  existing: boolean;
}

/** Room that the list keeps to the canvas' edges, and to the card. */
const EDGE = 8;

const useChoice = create<{ choice: Choice | null }>(() => ({ choice: null }));

/** A stream was dropped on the empty canvas: the user chooses its other end. */
export const chooseTaker = (port: PortRef, at: Point, screen: Point): void =>
  useChoice.setState({
    choice: { port, side: "out", at: { x: at.x, y: at.y - CARD.draftHeight / 2 }, screen, existing: false },
  });

/** With the keyboard the user chooses what to connect a port to. */
export function chooseOther(port: PortRef, side: "in" | "out"): void {
  const node = useEditor.getState().nodes.find((each) => each.id === port.element);
  if (!node) return;
  const card = document.querySelector(`.react-flow__node[data-id="${CSS.escape(port.element)}"]`);
  const box = card?.getBoundingClientRect() ?? canvasBox();
  const beside = CARD.width + 5.5 * 16;
  useChoice.setState({
    choice: {
      port,
      side,
      at: { x: node.position.x + (side === "out" ? beside : -beside), y: node.position.y },
      screen: { x: box.left, y: box.bottom + EDGE },
      existing: true,
    },
  });
}

/** For the one selected element: its first output, or the first free input of what has none. */
export function chooseForSelected(): void {
  const { selected, operators } = useEditor.getState();
  const [id, ...others] = selected;
  const element = id && others.length === 0 ? findElement(current(), id) : undefined;
  if (!element) return;
  const { inputs, outputs } = portsOf(operators.get(element.type));
  const free = inputs.find((port) => !element.inputs?.[port.name]) ?? inputs[0];
  const port = outputs[0] ?? free;
  if (port) chooseOther({ element: element.id, port: port.name }, outputs[0] ? "out" : "in");
}

interface Way {
  value: string;
  title: string;
  /** why it is not possible */
  refused: string | null;
  note: string | null;
  operator: Operator | undefined;
  /** the changed document, and the element to go on from */
  take: () => [PipelineDocument, string];
  /** what would make it possible */
  mends: Way[];
}

/** Rows that the list shows at once; a word narrows it. */
const WAYS_MAX = 30;

/** Ends of a stream with the elements that are there: those that fit first, the nearest of them before. */
function existingWays({ port: mine, side, at }: Choice, words: string): Way[] {
  const { operators, schemas } = useEditor.getState();
  const document = current();
  const others = elementsOf(document).filter(({ id }) => id !== mine.element);
  const far = (element: DocElement) => {
    const place = placeOf(element);
    return place ? Math.hypot(place.x - at.x, place.y - at.y) : Infinity;
  };
  return others
    .sort((a, b) => far(a) - far(b))
    .flatMap((element) => {
      const operator = operators.get(element.type);
      const ports = side === "out" ? portsOf(operator).inputs : portsOf(operator).outputs;
      return ports.map((port): Way => {
        const theirs = { element: element.id, port: port.name };
        const [from, to] = side === "out" ? [mine, theirs] : [theirs, mine];
        const verdict = judge(document, operators, from, to, schemas);
        const joined = findElement(document, to.element)?.inputs?.[to.port] === formatReference(from);
        const name = displayName(element, operator);
        const next = side === "out" ? element.id : mine.element;
        const way = {
          value: `${element.id}.${port.name}`,
          title: ports.length > 1 ? `${name}, ${port.name}` : name,
          refused: joined ? "already connected" : verdict.ok ? null : verdict.reason,
          note:
            verdict.ok && verdict.replaces
              ? `replaces ${streamName(document, operators, parseReference(verdict.replaces))}`
              : null,
          operator,
          take: (): [PipelineDocument, string] => [connect(current(), from, to), next],
        };
        const mends = joined || verdict.ok ? [] : verdict.mends;
        return { ...way, mends: mended(way, mends, (mend) => [mend.apply(current()), next]) };
      });
    })
    .filter(({ title, value }) => `${title} ${value}`.toLowerCase().includes(words.toLowerCase()))
    .sort((a, b) => Number(!!a.refused) - Number(!!b.refused) || Number(!!a.note) - Number(!!b.note))
    .slice(0, WAYS_MAX);
}

/** A refused way again for each change that makes it possible. */
const mended = (
  way: Omit<Way, "mends">,
  mends: Mend[],
  take: (mend: Mend) => [PipelineDocument, string],
): Way[] =>
  mends.map((mend, index) => ({
    ...way,
    value: `${way.value} ${index + 1}`,
    refused: null,
    note: mend.title,
    take: () => take(mend),
    mends: [],
  }));

/** A new element at the other end, as one step of undo; what is looked for stands first, whatever its kind. */
function newWays({ port: mine, side, at }: Choice, words: string): [string, Way[]][] {
  const { operators, schemas } = useEditor.getState();
  const theirPorts = (operator: Operator) => (side === "out" ? operator.inputs : operator.outputs);
  const drawn = (operator: Operator) => {
    const { document, id } = addElement(current(), operator, at);
    const theirs = { element: id, port: theirPorts(operator)[0]!.name };
    const [from, to] = side === "out" ? [mine, theirs] : [theirs, mine];
    return { document, id, from, to };
  };
  const way = (operator: Operator): Way => {
    const { document, from, to } = drawn(operator);
    // nothing is known yet about the output of a new element
    const verdict = judge(document, operators, from, to, side === "out" ? schemas : {});
    const found = {
      value: operator.type,
      title: operator.title,
      refused: verdict.ok ? null : verdict.reason,
      note: null,
      operator,
      take: (): [PipelineDocument, string] => {
        const now = drawn(operator);
        return [connect(now.document, now.from, now.to), now.id];
      },
    };
    const mends = verdict.ok ? [] : verdict.mends;
    const take = (mend: Mend): [PipelineDocument, string] => [
      mend.apply(drawn(operator).document),
      to.element,
    ];
    return { ...found, mends: mended(found, mends, take) };
  };
  const fits = ranked(operators.values(), words).filter((operator) => theirPorts(operator).length > 0);
  if (words.trim()) return fits.length ? [["Elements", fits.map(way)]] : [];
  return byCategory(fits).map(([title, list]) => [title, list.map(way)]);
}

/** How many ports the element has on that side. */
function portsAt({ port, side }: Choice): number {
  const element = findElement(current(), port.element);
  const { inputs, outputs } = portsOf(useEditor.getState().operators.get(element?.type ?? ""));
  return (side === "in" ? inputs : outputs).length;
}

export function QuickAdd() {
  const choice = useChoice((state) => state.choice);
  const place = useRef<HTMLDivElement>(null);
  const close = () => useChoice.setState({ choice: null });
  useEffect(() => {
    if (!choice) return;
    const outside = (event: PointerEvent) => !place.current?.contains(event.target as Node) && close();
    window.addEventListener("pointerdown", outside);
    return () => window.removeEventListener("pointerdown", outside);
  }, [choice]);
  useLayoutEffect(() => {
    // beside where it was asked for, and wholly within the canvas: panels lie around it
    if (!choice || !place.current) return;
    const [box, own] = [canvasBox(), place.current.getBoundingClientRect()];
    const within = (wanted: number, from: number, to: number) => Math.max(from, Math.min(wanted, to));
    place.current.style.left = `${within(choice.screen.x, box.left + EDGE, box.right - own.width - EDGE)}px`;
    place.current.style.top = `${within(choice.screen.y, box.top + EDGE, box.bottom - own.height - EDGE)}px`;
  }, [choice]);
  if (!choice) return null;
  const { element, port } = choice.port;
  const { operators } = useEditor.getState();
  const name = nameOfId(current(), operators, element);
  const leave = () => {
    close();
    focusCard(element);
  };
  return (
    <div
      ref={place}
      className="quick-add"
      role="dialog"
      aria-label={
        choice.existing
          ? `Connect the ${portName(name, choice.side, port, portsAt(choice))}`
          : `Add an element after ${name}`
      }
      onKeyDown={(event) => event.key === "Escape" && leave()}
    >
      <Ways key={`${element}.${port}`} choice={choice} onDone={close} />
    </div>
  );
}

function Ways({ choice, onDone }: { choice: Choice; onDone: () => void }) {
  const [words, setWords] = useState("");
  const existing = choice.existing ? existingWays(choice, words) : [];
  const taken =
    choice.side === "in" ? findElement(current(), choice.port.element)?.inputs?.[choice.port.port] : null;
  const take = (way: Pick<Way, "take">) => {
    const [document, next] = way.take();
    commit(document);
    select([next]);
    onDone();
    focusCard(next);
  };
  const out = choice.side === "out";
  const { operators } = useEditor.getState();
  const name = nameOfId(current(), operators, choice.port.element);
  return (
    <Command label="Elements" loop shouldFilter={false}>
      <Command.Input
        autoFocus
        value={words}
        onValueChange={setWords}
        aria-label={out ? `Elements that read from ${name}` : `Elements that ${name} reads`}
        placeholder={out ? `After ${name}…` : `Before ${name}…`}
      />
      <Command.List>
        <Command.Empty>No element matches.</Command.Empty>
        {existing.length > 0 && (
          <Command.Group heading={out ? "Connect to" : "Connect from"}>
            {existing.map((way) => (
              <Rows key={way.value} way={way} prefix="there" onTake={take} />
            ))}
          </Command.Group>
        )}
        {newWays(choice, words).map(([title, list]) => (
          <Command.Group key={title} heading={choice.existing ? `Add: ${title.toLowerCase()}` : title}>
            {list.map((way) => (
              <Rows key={way.value} way={way} prefix={words.trim() ? "found" : "new"} onTake={take} />
            ))}
          </Command.Group>
        ))}
        {taken && (
          <Command.Item
            value="disconnect"
            onSelect={() => take({ take: () => [disconnect(current(), choice.port), choice.port.element] })}
          >
            <Unplug aria-hidden="true" />
            Remove the stream from {streamName(current(), operators, parseReference(taken))}
          </Command.Item>
        )}
      </Command.List>
    </Command>
  );
}

/**
 * A way, and what would make it possible below it. Of a row that moves to another group its value has to change,
 * by `prefix`: for the same value, cmdk goes on naming the row that is gone as the active one.
 */
function Rows({ way, prefix, onTake }: { way: Way; prefix: string; onTake: (way: Way) => void }) {
  return [way, ...way.mends].map((each) => (
    <Row key={each.value} way={each} prefix={prefix} onTake={() => onTake(each)} />
  ));
}

function Row({ way, prefix, onTake }: { way: Way; prefix: string; onTake: () => void }) {
  const note = way.refused ?? way.note;
  return (
    <Command.Item value={`${prefix} ${way.value}`} disabled={!!way.refused} onSelect={onTake}>
      <OperatorIcon icon={way.operator?.icon} category={way.operator?.category} />
      <span className="quick-add__title">
        {way.title}
        {note && <span className="menu__note">{note}</span>}
      </span>
    </Command.Item>
  );
}
