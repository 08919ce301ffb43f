import { CircleAlert, Info, TriangleAlert } from "lucide-react";
import { livePage } from "../shared/address";
import { useLive } from "../shared/live";
import { nameIn } from "../shared/live-reducer";
import type { AttentionLine, LogEvent } from "../shared/types";
import { Ago } from "../shared/ui/parts";
import { Advised } from "./advised";

const ICONS = { info: Info, warning: TriangleAlert, error: CircleAlert };

/** An event, or a line that needs attention, with a policy's advice. */
export type FeedLine = LogEvent & Partial<Pick<AttentionLine, "move_to" | "restore_to" | "site" | "change">>;

interface Repeated {
  event: FeedLine;
  times: number;
}

/** The same message about the same thing, again and again, is one line with a count. */
function collapse(events: FeedLine[]): Repeated[] {
  const lines = new Map<string, Repeated>();
  for (const event of events) {
    const key = [event.severity, event.pipeline, event.element, event.node, event.message].join("|");
    const line = lines.get(key);
    if (line) line.times += 1;
    else lines.set(key, { event, times: 1 });
  }
  return [...lines.values()];
}

/** The id of an event's handover; null when it has none. */
function handoverOf(event: LogEvent): string | null {
  const id = (event.detail as { handover?: unknown } | null | undefined)?.handover;
  return typeof id === "string" ? id : null;
}

export function Feed({ events, max }: { events: FeedLine[]; max?: number }) {
  const elements = useLive((state) => state.elements);
  return (
    <ul className="feed">
      {collapse(events)
        .slice(0, max)
        .map(({ event, times }, index) => {
          const Icon = ICONS[event.severity] ?? Info;
          return (
            <li key={event.id ?? index} className={`feed__item feed__item--${event.severity}`}>
              <Icon aria-label={event.severity} />
              <div>
                {event.message}
                {times > 1 && <span className="badge feed__times">{times} times</span>}
                <div className="feed__links">
                  {event.pipeline && (
                    <a href={livePage(event.pipeline, event.element)}>
                      {event.element
                        ? `${nameIn(elements, event.pipeline, event.element)} of ${event.pipeline}`
                        : event.pipeline}
                    </a>
                  )}
                  {handoverOf(event) && (
                    <a href={`/handovers/${encodeURIComponent(handoverOf(event) ?? "")}`}>Handover</a>
                  )}
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
