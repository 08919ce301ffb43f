/** Looks into the system that a connection leads to. What is ticked there becomes parameters of the element. */
import { useEffect, useState, type KeyboardEvent } from "react";
import { RefreshCw, Search } from "lucide-react";
import { Asker } from "../../shared/asker";
import { useNow } from "../../shared/clock";
import { plural, sentence } from "../../shared/format";
import { useElement, useLive } from "../../shared/live";
import type { DocElement, FoundThing, Operator, SchemaField } from "../../shared/types";
import { Dialog, DialogAction } from "../../shared/ui/dialog";
import { Choice } from "../../shared/ui/field";
import { toast, toastError } from "../../shared/ui/toast";
import { useEditor } from "../store";
import { nodeFor, startOf, usable, WHOLE, type Branch } from "./found";
import { Level, ListContext, Things } from "./level";
import { takeOver } from "./take-over";
import { useBrowse } from "./use-browse";
import "./browse.css";

interface Props {
  connection: string;
  element: DocElement;
  operator: Operator;
  /** those of its input */
  columns: readonly SchemaField[];
  onClose: () => void;
}

export function BrowseDialog({ connection, element, operator, columns, onClose }: Props) {
  const nodes = useLive((state) => state.nodes);
  const live = useElement(
    useEditor((state) => state.name),
    element.id,
  );
  const [chosen, setNode] = useState("");
  const node = chosen || nodeFor(nodes, element, live?.node);
  const { branches, found, look, search, endSearch, again } = useBrowse(
    connection,
    node,
    startOf(operator, element),
  );
  const [find, setFind] = useState("");
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [ticked, setTicked] = useState<ReadonlyMap<string, FoundThing>>(new Map());
  const [busy, setBusy] = useState(false);
  const [asker] = useState(() => new Asker());
  useEffect(() => () => asker.stop(), [asker]);
  const single = operator.ticks === "one";
  const shown = found ?? branches[WHOLE];
  const tickable = found ? found.things.filter((each) => each.usable) : usable(branches, WHOLE, find, open);

  const toggle = (thing: FoundThing) => {
    const next = new Set(open);
    if (!next.delete(thing.path)) {
      next.add(thing.path);
      if (branches[thing.path]?.state !== "there") look(thing.path, [...thing.within, thing.title]);
    }
    setOpen(next);
  };
  const tick = (thing: FoundThing) => {
    const next = new Map(single ? [] : ticked);
    if (!ticked.has(thing.path)) next.set(thing.path, thing);
    else next.delete(thing.path);
    setTicked(next);
  };
  const tickAll = () =>
    setTicked(new Map([...ticked, ...tickable.map((each) => [each.path, each] as const)]));
  const take = () => {
    setBusy(true);
    const things = [...ticked.values()];
    takeOver(
      asker,
      { connection, element, columns, ticked: things },
      () => {
        toast({ tone: "done", title: `${tookWords(things)} taken over`, text: "Undo takes it back." });
        onClose();
      },
      (error) => {
        setBusy(false);
        toastError("Nothing was taken over", error);
      },
    );
  };
  return (
    <Dialog
      open
      onClose={onClose}
      size="l"
      title={`Browse ${connection}`}
      description={`${single ? "Choose the one" : "Tick those"} that ${operator.category === "sources" ? "the element reads" : "the element writes to"}. The node looks, and changes nothing.`}
      footer={
        <>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <DialogAction
            title={ticked.size > 0 && !single ? `Take over ${ticked.size}` : "Take over"}
            refused={ticked.size === 0 ? `Nothing is ${single ? "chosen" : "ticked"} yet.` : null}
            busy={busy}
            run={take}
          />
        </>
      }
    >
      <div className="stack">
        <div className="browse__tools">
          <Choice
            label="On the node"
            value={node}
            options={nodes.filter(({ up }) => up).map(({ name }) => [name, name] as [string, string])}
            onChange={(next) => {
              setOpen(new Set());
              setNode(next);
            }}
          />
          <FindField
            value={find}
            onChange={(next) => {
              setFind(next);
              endSearch();
            }}
            onSearch={() => search(find.trim())}
          />
          <button
            type="button"
            className="button"
            onClick={() => {
              setOpen(new Set());
              again();
            }}
          >
            <RefreshCw aria-hidden="true" />
            Look again
          </button>
        </div>
        <Told branch={node ? shown : undefined} node={node} connection={connection} />
        <ListContext.Provider value={{ branches, open, ticked, single, flat: found !== null, toggle, tick }}>
          <div className="browse__found" onKeyDown={moveFocus}>
            {found ? (
              <Things things={found.things} find="" label="What was found" />
            ) : (
              <Level path={WHOLE} find={find} label={`What ${connection} has`} />
            )}
            {shown?.state === "there" && tickable.length === 0 && find && !found && (
              <p className="muted small">
                Nothing that is shown here can be ticked and has “{find}” in its name. Press Search to look
                for it in the whole system.
              </p>
            )}
          </div>
        </ListContext.Provider>
        {!single && tickable.length > 1 && (
          <div className="row row--wrap">
            <button type="button" className="button button--small" onClick={tickAll}>
              Tick all {tickable.length} that are shown
            </button>
            {ticked.size > 0 && (
              <button
                type="button"
                className="button button--quiet button--small"
                onClick={() => setTicked(new Map())}
              >
                Tick none
              </button>
            )}
          </div>
        )}
      </div>
    </Dialog>
  );
}

const tookWords = (things: FoundThing[]): string =>
  things.length === 1 && things[0] ? things[0].title : plural(things.length, "entry", "entries");

/** Filters what is shown while one types; the button asks the system itself. */
function FindField({
  value,
  onChange,
  onSearch,
}: {
  value: string;
  onChange: (value: string) => void;
  onSearch: () => void;
}) {
  const ready = value.trim() !== "";
  return (
    <div className="field browse__find">
      <label className="field__label" htmlFor="browse-find">
        Part of the name
      </label>
      <div className="row">
        <input
          className="input"
          id="browse-find"
          value={value}
          maxLength={200}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => onChange(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && ready) onSearch();
          }}
        />
        <button
          type="button"
          className="button"
          aria-disabled={!ready}
          title="The node looks for it in the whole system"
          onClick={() => ready && onSearch()}
        >
          <Search aria-hidden="true" />
          Search
        </button>
      </div>
    </div>
  );
}

/** What the node has found, how long it looks already, or why there is nothing. */
function Told({
  branch,
  node,
  connection,
}: {
  branch: Branch | undefined;
  node: string;
  connection: string;
}) {
  const asking = branch?.state === "asking";
  return (
    <div role="status">
      {!node && <p className="field__error">No node is up that could look. Start one, then look again.</p>}
      {node && (!branch || asking) && <Asking node={node} connection={connection} />}
      {branch?.state === "refused" && <p className="field__error">{sentence(branch.words)}</p>}
      {branch?.state === "there" && <p className="muted small">{branch.words}</p>}
    </div>
  );
}

function Asking({ node, connection }: { node: string; connection: string }) {
  const [begun] = useState(() => Date.now());
  const seconds = useNow((now) => Math.max(0, Math.round((now - begun) / 1000)));
  return (
    <p className="muted small">
      {node} connects to {connection} and looks…{" "}
      <span className="num" aria-hidden="true">
        {seconds} s
      </span>
    </p>
  );
}

/** The arrow keys lead through the list, beside the Tab key. */
function moveFocus(event: KeyboardEvent<HTMLDivElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>("button, input")];
  const at = all.indexOf(document.activeElement as HTMLElement);
  const next = all[at + step];
  if (at < 0 || !next) return;
  event.preventDefault();
  next.focus();
}
