import { memo, useContext, type KeyboardEvent } from "react";
import { Handle, Position, useConnection, type NodeProps } from "@xyflow/react";
import { BellRing, CircleAlert, CircleDashed, Layers, MailX, Pin, Unplug } from "lucide-react";
import { useNow } from "../shared/clock";
import { capitalised, count, plural, rate } from "../shared/format";
import { shortPhase } from "../shared/handovers";
import { useElement, useHandover, useRunsInside } from "../shared/live";
import { passes } from "../shared/points";
import { quietOf } from "../shared/quiet";
import { toneOf, wordOf } from "../shared/status";
import type { DocElement, LiveElement, Operator, Port } from "../shared/types";
import { OperatorIcon } from "../shared/ui/icons";
import { StatusDot, Tip } from "../shared/ui/parts";
import { CardName } from "./card-name";
import { judge } from "./connect";
import { displayName, kindName, portName, replaceWords, sourcesOf } from "../shared/document";
import type { Mark } from "./difference";
import { draftHeight, portPlace, portsOf, problemsId, type CardNode, type GroupNode } from "./flow";
import { gapWords } from "./live/connector";
import { showTab } from "./live/shown-tab";
import { hasColumns, wordsAt } from "./passing/checked";
import { chooseOther } from "./quick-add";
import { current, faultsOf, isEditable, select, useEditor, type LocatedFault } from "./store";
import { isQuiet } from "./touched";
import { LookContext } from "./view";

export const ElementCard = memo(function ElementCard({ id, data, selected }: NodeProps<CardNode>) {
  const { element, operator, live } = data;
  const { simple, bare, far } = useContext(LookContext);
  const faults = useEditor((state) => faultsOf(state.faults, state.checked ?? state.history.present, id));
  const wrong = useEditor((state) => faults.some((fault) => !isQuiet(state.touched, id, fault)));
  const looking = useEditor((state) => state.looked !== null);
  const editable = useEditor(isEditable);
  const mark = useEditor((state) => state.looked?.marks[id]);
  const drafted = !live && !looking;
  const faulty = wrong && drafted;
  const replace = !live && !looking && !!element.ui?.replace;
  const { inputs, outputs } = portsOf(operator);
  const end = { id, name: displayName(element, operator), editable, reachable: selected && drafted };
  return (
    <div
      className={`el-card${selected ? " el-card--selected" : ""}${faulty ? " el-card--faulty" : ""}${replace ? " el-card--replace" : ""}${mark ? ` diff diff--${mark}` : ""}`}
      data-category={operator?.category}
      style={live ? undefined : { minHeight: draftHeight(operator) }}
    >
      {/* the card itself has the focus: its tip is shown on hover */}
      <span id={problemsId(id)} hidden>
        {drafted && faults.length > 0 && problemText(faults)}
      </span>
      {replace && <span className="badge badge--accent el-card__replace">{replaceWords(element)}</span>}
      {!bare && <Ports {...end} ports={inputs} side="in" />}
      <div className="el-card__head">
        {!far && (
          <span className="op-icon" data-category={operator?.category}>
            <OperatorIcon icon={operator?.icon} category={operator?.category} />
          </span>
        )}
        <span className="el-card__names">
          <CardName element={element} operator={operator} />
          {far ? null : live ? (
            <LiveType id={id} kind={kindName(element, operator)} operator={operator} />
          ) : (
            <DraftType kind={kindName(element, operator)} element={element} operator={operator} />
          )}
          {live && simple && !far && <LiveLine id={id} />}
        </span>
        {mark ? (
          <DiffMark mark={mark} />
        ) : live ? (
          <>
            <AlarmMark id={id} selected={selected} />
            {!simple && <GapsMark id={id} selected={selected} />}
            {!simple && <LettersMark id={id} selected={selected} />}
            <LiveStatus id={id} />
          </>
        ) : faulty ? (
          !simple && <FaultMark faults={faults} />
        ) : drafted && faults.length > 0 && !simple ? (
          <ToDoMark faults={faults} />
        ) : null}
      </div>
      {live && !simple && <LiveFigures element={element} isSink={operator?.outputs.length === 0} />}
      {!bare && <Ports {...end} ports={outputs} side="out" />}
    </div>
  );
});

const problemText = (faults: readonly LocatedFault[]): string =>
  faults.map((fault) => fault.message).join(" ");

function FaultMark({ faults }: { faults: readonly LocatedFault[] }) {
  return (
    <Tip text={problemText(faults)}>
      <span
        className="el-card__fault"
        role="img"
        aria-label={`${faults.length} problem${faults.length > 1 ? "s" : ""}`}
      >
        <CircleAlert aria-hidden="true" />
      </span>
    </Tip>
  );
}

/** It is not wrong yet: something is still to be filled in. */
function ToDoMark({ faults }: { faults: readonly LocatedFault[] }) {
  return (
    <Tip text={problemText(faults)}>
      <span className="el-card__todo" role="img" aria-label={`${faults.length} still to fill in`}>
        <CircleDashed aria-hidden="true" />
      </span>
    </Tip>
  );
}

/** How much flows, when the canvas is zoomed out. */
function LiveLine({ id }: { id: string }) {
  const element = useElement(
    useEditor((state) => state.name),
    id,
  );
  if (!element) return null;
  const flow = FLOWING.has(element.status) ? `${rate(passes(element))}/s` : wordOf(element.status);
  return <span className="el-card__type el-card__flow num">{flow}</span>;
}

function DiffMark({ mark }: { mark: Mark }) {
  return <span className="el-card__mark diff__word small">{mark}</span>;
}

function DraftType({
  kind,
  element,
  operator,
}: {
  kind: string | null;
  element: DocElement;
  operator: Operator | undefined;
}) {
  const place = element.node ?? element.site;
  return (
    <span className="el-card__type">
      {/* the place first: the kind may not fit, and the icon says it too */}
      {place && (
        <>
          <Pin aria-label={element.node ? "pinned to" : "at the site"} />
          {place}
        </>
      )}
      <DeliveryMark operator={operator} behind={!!place} />
      {kind && `${place || operator?.delivery_why ? " · " : ""}${kind}`}
    </span>
  );
}

function LiveType({
  id,
  kind,
  operator,
}: {
  id: string;
  kind: string | null;
  operator: Operator | undefined;
}) {
  const element = useElement(
    useEditor((state) => state.name),
    id,
  );
  return (
    <span className="el-card__type">
      {/* the node first: it is what changes, and the kind may not fit */}
      {element?.node}
      <DeliveryMark operator={operator} behind={!!element?.node} />
      {kind && `${element?.node || operator?.delivery_why ? " · " : ""}${kind}`}
    </span>
  );
}

/** How often a row of a connector comes or goes when something fails; why, on hover. */
function DeliveryMark({ operator, behind }: { operator: Operator | undefined; behind: boolean }) {
  if (!operator?.delivery_why) return null;
  return (
    <>
      {behind && " · "}
      <Tip text={operator.delivery_why}>
        <span className="el-card__delivery">{operator.delivery}</span>
      </Tip>
    </>
  );
}

function LiveStatus({ id }: { id: string }) {
  const element = useElement(
    useEditor((state) => state.name),
    id,
  );
  return <StatusDot status={element?.status ?? "draft"} />;
}

/** The element has an alarm. A click leads to it. */
function AlarmMark({ id, selected }: { id: string; selected: boolean }) {
  const pipeline = useEditor((state) => state.name);
  const alarm = useElement(pipeline, id)?.alarm;
  if (!alarm) return null;
  const words = `Active ${alarm} alarm`;
  return (
    <Tip text={`${words}. Click to see it`}>
      <a
        className="el-card__alarm nodrag"
        data-severity={alarm}
        href={`/alarms/?pipeline=${encodeURIComponent(pipeline)}`}
        tabIndex={selected ? 0 : -1}
        aria-label={words}
      >
        <BellRing aria-hidden="true" />
      </a>
    </Tip>
  );
}

/** What the card counts of rows that did not go their way. It opens the tab that says why. */
function CountMark(mark: {
  id: string;
  selected: boolean;
  number: number;
  words: string;
  tip: string;
  tab: string;
  icon: React.ReactNode;
}) {
  return (
    <Tip text={mark.tip}>
      <button
        type="button"
        className="el-card__letters num nodrag"
        tabIndex={mark.selected ? 0 : -1}
        aria-label={mark.words}
        onClick={() => {
          showTab(mark.id, mark.tab);
          select([mark.id]);
        }}
      >
        {mark.icon}
        {count(mark.number)}
      </button>
    </Tip>
  );
}

/** Rows that its system had and that never came, or never went out. */
function GapsMark(card: { id: string; selected: boolean }) {
  const pipeline = useEditor((state) => state.name);
  const connector = useElement(pipeline, card.id)?.connector;
  const words = connector ? gapWords(connector) : "";
  if (!connector || !words) return null;
  const icon = <Unplug aria-hidden="true" />;
  return (
    <CountMark {...card} number={connector.gaps_total} words={words} tip={words} tab="overview" icon={icon} />
  );
}

/** How many rows the element could not take. */
function LettersMark(card: { id: string; selected: boolean }) {
  const pipeline = useEditor((state) => state.name);
  const letters = useElement(pipeline, card.id)?.dead_letters_open ?? 0;
  if (letters === 0) return null;
  const words = plural(letters, "dead letter");
  const tip = `${words}: rows that it could not take. Click to see why`;
  const icon = <MailX aria-hidden="true" />;
  return <CountMark {...card} number={letters} words={words} tip={tip} tab="dead" icon={icon} />;
}

function LiveFigures({ element: drawn, isSink }: { element: DocElement; isSink: boolean }) {
  const pipeline = useEditor((state) => state.name);
  const element = useElement(pipeline, drawn.id);
  const inside = useRunsInside(pipeline, drawn.id, sourcesOf(drawn));
  const handover = useHandover(element?.handover);
  // the words and not the time: a card is drawn again only when they change
  const quiet = useNow((now) => {
    const found = element && quietOf(element, now);
    return found ? `${found.label} ${found.value}` : null;
  });
  if (!element) return <div className="el-card__figures muted">not deployed</div>;
  if (handover && !handover.outcome) {
    return (
      <div className="el-card__figures el-card__figures--moving">
        <span className="ellipsis">
          {handover.kind === "restoration" ? "Restoring on" : "Moving to"} {handover.target}
        </span>
        <b>{shortPhase(handover)}</b>
      </div>
    );
  }
  if (!FLOWING.has(element.status)) return <StatusRow element={element} inside={inside} />;
  if (quiet && element.lag_rows === 0)
    return <div className="el-card__figures el-card__figures--word num muted">{quiet}</div>;
  return (
    <div className="el-card__figures num">
      <span>
        <b>{rate(element.rows_in_per_s)}</b> in/s
      </span>
      {!isSink && (
        <span>
          <b>{rate(element.rows_out_per_s)}</b> out/s
        </span>
      )}
      {!inside && (
        <span
          className={(element.lag_rows ?? 0) > 0 && element.status === "lagging" ? "el-card__lag" : ""}
          title={element.lag_unknown ?? undefined}
        >
          lag <b>{count(element.lag_rows)}</b>
        </span>
      )}
    </div>
  );
}

/** Statuses in which the figures say more than the word. */
const FLOWING = new Set<string>(["running", "lagging", "moving"]);

const waitWords = ({ lag_rows, lag_unknown }: LiveElement): string =>
  lag_unknown
    ? `how many rows wait is not known: ${lag_unknown}`
    : lag_rows === 1
      ? "1 row waits"
      : `${count(lag_rows)} rows wait`;

function StatusRow({ element, inside }: { element: LiveElement; inside: boolean }) {
  const text: Partial<Record<string, string>> = {
    failed: element.error?.message ?? "see its error",
    stalled: element.error?.message ?? "see its error",
    silent: "restore it elsewhere",
    unheard: "see Needs attention",
    starting: "its node starts it",
    view: "select it to see it",
    paused: inside ? undefined : waitWords(element),
    draft: "not deployed",
    ended: "the recording has ended",
  };
  return (
    <div className={`el-card__figures el-card__figures--word status--${toneOf(element.status)}`}>
      {element.status !== "view" && element.status !== "draft" && <b>{wordOf(element.status)}</b>}
      <span className="ellipsis muted" title={text[element.status]}>
        {text[element.status]}
      </span>
    </div>
  );
}

interface Side {
  id: string;
  name: string;
  side: "in" | "out";
  editable: boolean;
  /**
   * with the Tab key only the selected card's ports have a stop; otherwise there would be too many between
   * two cards
   */
  reachable: boolean;
}

function Ports({ ports, ...side }: Side & { ports: Port[] }) {
  return ports.map((port, index) => (
    <PortHandle
      key={port.name}
      port={port}
      top={`${portPlace(index, ports.length) * 100}%`}
      among={ports.length}
      {...side}
    />
  ));
}

function PortHandle({
  id,
  name,
  port,
  side,
  top,
  among,
  editable,
  reachable,
}: Side & { port: Port; top: string; among: number }) {
  // while a connection is drawn, each port shows whether it would accept it
  const fit = useConnection((connection) => {
    if (!connection.inProgress || connection.fromHandle.type === (side === "in" ? "target" : "source"))
      return "";
    const other = { element: connection.fromNode.id, port: connection.fromHandle.id ?? "out" };
    const mine = { element: id, port: port.name };
    const { operators, schemas } = useEditor.getState();
    const verdict =
      side === "in"
        ? judge(current(), operators, other, mine, schemas)
        : judge(current(), operators, mine, other, schemas);
    return verdict.ok ? "port--fits" : "port--refuses";
  });
  const label = capitalised(portName(name, side, port.name, among));
  const told = useEditor(hasColumns);
  const passes = useEditor((state) =>
    reachable ? wordsAt(state, { side, element: id, port: port.name }) : "",
  );
  const passesId = `passes-${side}-${id}-${port.name}`;
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation(); // the card would take it as its own
    chooseOther({ element: id, port: port.name }, side);
  };
  return (
    <Handle
      id={port.name}
      type={side === "in" ? "target" : "source"}
      position={side === "in" ? Position.Left : Position.Right}
      className={`port ${fit}`}
      style={{ top }}
      isConnectable={editable}
      role={editable ? "button" : "img"}
      tabIndex={reachable ? 0 : undefined}
      aria-haspopup={editable ? "dialog" : undefined}
      aria-label={label}
      aria-describedby={reachable ? passesId : undefined}
      title={told ? undefined : port.description ? `${port.name}: ${port.description}` : label}
      onKeyDown={editable ? press : undefined}
    >
      {reachable && (
        <span id={passesId} hidden>
          {passes}
        </span>
      )}
      {among > 1 && <span className={`port__name port__name--${side}`}>{port.name}</span>}
    </Handle>
  );
}

export const GroupBox = memo(function GroupBox({ data }: NodeProps<GroupNode>) {
  return (
    <div className="group-box" style={{ width: data.width, height: data.height }}>
      <span className="group-box__name">
        <Layers aria-hidden="true" />
        Runs as one · {data.name}
      </span>
    </div>
  );
});
