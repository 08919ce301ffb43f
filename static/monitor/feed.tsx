import { CircleAlert, Info, TriangleAlert } from "lucide-react";
import type { LogEvent } from "../shared/types";
import { Ago } from "../shared/ui/parts";

const ICONS = { info: Info, warning: TriangleAlert, error: CircleAlert };

export function Feed({ events }: { events: LogEvent[] }) {
  return (
    <ul className="feed">
      {events.map((event, index) => {
        const Icon = ICONS[event.severity] ?? Info;
        return (
          <li key={event.id ?? index} className={`feed__item feed__item--${event.severity}`}>
            <Icon aria-label={event.severity} />
            <div>
              {event.message}
              <div className="feed__links">
                {event.pipeline && (
                  <a
                    href={`/pipelines/${encodeURIComponent(event.pipeline)}?mode=live${event.element ? `&element=${encodeURIComponent(event.element)}` : ""}`}
                  >
                    {event.pipeline}
                    {event.element ? ` / ${event.element}` : ""}
                  </a>
                )}
                {event.node && <a href={`/nodes/${encodeURIComponent(event.node)}`}>{event.node}</a>}
              </div>
            </div>
            <span className="muted small">
              <Ago at={event.at} />
            </span>
          </li>
        );
      })}
    </ul>
  );
}
