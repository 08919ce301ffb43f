import { CircleAlert, Info, TriangleAlert } from "lucide-react";
import { livePage } from "../shared/address";
import { plural } from "../shared/format";
import { useLive } from "../shared/live";
import { nameIn } from "../shared/live-reducer";
import type { AttentionLine, LogEvent } from "../shared/types";
import { Ago } from "../shared/ui/parts";
import { Advised } from "./advised";

const ICONS = { info: Info, warning: TriangleAlert, error: CircleAlert };

/** An event, or a line that needs attention, with a policy's advice. */
export type FeedLine = LogEvent &
  Partial<Pick<AttentionLine, "move_to" | "restore_to" | "site" | "change" | "alarm">>;

export interface Told {
  event: FeedLine;
  /** what follows from it: it is told with it, as one */
  parts: FeedLine[];
}

interface Repeated extends Told {
  times: number;
}

/** Events with what follows from them. One whose cause is not among them stands for itself. */
export function withParts(events: readonly FeedLine[]): Told[] {
  const all = events.map((event): Told => ({ event, parts: [] }));
  // lines that need attention have no id
  const byId = new Map(
    all.flatMap((told) => (told.event.id == null ? [] : [[told.event.id, told] as const])),
  );
  return all.filter(({ event }) => {
    const cause = event.cause == null ? undefined : byId.get(event.cause);
    cause?.parts.push(event);
    return !cause;
  });
}

/**
 * "2 elements restored, 1 being restored, 1 not restored": what became of the elements of a node that fell silent.
 * An event names the group of those that run as one; `sizes` has how many these are.
 */
export function partsSay(parts: readonly FeedLine[], sizes: ReadonlyMap<string, number>): string {
  const of = (wanted: (event: FeedLine) => boolean) =>
    new Set(parts.filter(wanted).map(({ pipeline, element }) => groupKey(pipeline, element)));
  const count = (groups: Iterable<string>) =>
    [...groups].reduce((sum, group) => sum + (sizes.get(group) ?? 1), 0);
  const done = of(({ kind }) => kind === "handover.done");
  const wrong = of(({ severity, kind }) => severity === "error" || kind === "handover.failed");
  const begun = of(({ kind }) => kind === "element.restoring");
  const left = (some: Set<string>) => [...some].filter((each) => !done.has(each));
  const still = left(begun).filter((each) => !wrong.has(each));
  return [
    done.size > 0 && `${plural(count(done), "element")} restored`,
    still.length > 0 && `${count(still)} being restored`,
    left(wrong).length > 0 && `${count(left(wrong))} not restored`,
    parts.some(({ kind }) => kind === "node.up") && "the node is up again",
  ]
    .filter(Boolean)
    .join(", ");
}

/** The same message about the same thing, again and again, is one line with a count. */
function collapse(events: FeedLine[]): Repeated[] {
  const lines = new Map<string, Repeated>();
  for (const { event, parts } of withParts(events)) {
    const key = [event.severity, event.pipeline, event.element, event.node, event.message].join("|");
    // each failure has a line of its own, with what followed from it
    const line = parts.length > 0 ? undefined : lines.get(key);
    if (line && line.parts.length === 0) line.times += 1;
    else lines.set(parts.length > 0 ? `${key}|${event.id}` : key, { event, parts, times: 1 });
  }
  return [...lines.values()];
}

/** The id of an event's handover; null when it has none. */
function handoverOf(event: LogEvent): string | null {
  const id = (event.detail as { handover?: unknown } | null | undefined)?.handover;
  return typeof id === "string" ? id : null;
}

const groupKey = (pipeline: string | null, group: string | null) => `${pipeline} ${group}`;

function Parts({ parts }: { parts: FeedLine[] }) {
  const elements = useLive((state) => state.elements);
  const sizes = new Map<string, number>();
  for (const [pipeline, list] of Object.entries(elements))
    for (const { id, group } of list) {
      const key = groupKey(pipeline, group ?? id);
      sizes.set(key, (sizes.get(key) ?? 0) + 1);
    }
  return (
    <details className="feed__parts">
      <summary>{partsSay(parts, sizes) || plural(parts.length, "event")}</summary>
      <ul>
        {parts.map((part) => (
          <li key={part.id}>
            {part.message} <Ago at={part.at} />
          </li>
        ))}
      </ul>
    </details>
  );
}

export function Feed({ events, max }: { events: FeedLine[]; max?: number }) {
  const elements = useLive((state) => state.elements);
  const pipelines = useLive((state) => state.pipelines);
  const titleOf = (pipeline: string) => pipelines.find(({ name }) => name === pipeline)?.title ?? pipeline;
  return (
    <ul className="feed">
      {collapse(events)
        .slice(0, max)
        .map(({ event, parts, times }, index) => {
          const Icon = ICONS[event.severity] ?? Info;
          return (
            <li key={event.id ?? index} className={`feed__item feed__item--${event.severity}`}>
              <Icon aria-label={event.severity} />
              <div>
                {event.message}
                {times > 1 && <span className="badge feed__times">{times} times</span>}
                {parts.length > 0 && <Parts parts={parts} />}
                <div className="feed__links">
                  {event.pipeline && (
                    <a href={livePage(event.pipeline, event.element)}>
                      {event.element
                        ? `${nameIn(elements, event.pipeline, event.element)} of ${titleOf(event.pipeline)}`
                        : titleOf(event.pipeline)}
                    </a>
                  )}
                  {handoverOf(event) && (
                    <a href={`/handovers/${encodeURIComponent(handoverOf(event) ?? "")}`}>Handover</a>
                  )}
                  {event.alarm !== undefined && <a href={`/alarms/?alarm=${event.alarm}`}>Alarm</a>}
                  <Advised {...event} />
                  {event.node && <a href={`/nodes/${encodeURIComponent(event.node)}`}>{event.node}</a>}
                </div>
              </div>
              {event.at && (
                <span className="muted small">
                  <Ago at={event.at} />
                </span>
              )}
            </li>
          );
        })}
    </ul>
  );
}
