import { millis } from "../../shared/format";
import type { LiveElement } from "../../shared/types";
import "./percentiles.css";

const PLACES = ["p50", "p95", "p99"] as const;

const ROWS = [
  { name: "Latency", of: "latency", title: "From a row's arrival to the commit of its output" },
  { name: "Batch", of: "batch", title: "From a batch's start to its commit" },
] as const;

type Timed = Pick<
  LiveElement,
  "latency_ms_p50" | "latency_ms_p95" | "latency_ms_p99" | "batch_ms_p50" | "batch_ms_p95" | "batch_ms_p99"
>;

/** How long rows and batches take: half of them, 95 % and 99 % take at most this long. */
export function Percentiles({ element }: { element: Timed }) {
  return (
    <table className="table percentiles">
      <thead>
        <tr>
          <th>Time</th>
          {PLACES.map((place) => (
            <th key={place} className="num" title={`${place.slice(1)} % take at most this long`}>
              {place}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {ROWS.map(({ name, of, title }) => (
          <tr key={of}>
            <th scope="row" title={title}>
              {name}
            </th>
            {PLACES.map((place) => (
              <td key={place} className="num">
                {millis(element[`${of}_ms_${place}`])}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
