import { forecastPath } from "../../shared/actions";
import { get } from "../../shared/api";
import { expectation, type MoveWay } from "../../shared/forecast";
import { nameOf } from "../../shared/status";
import type { Forecast, LiveElement } from "../../shared/types";
import { useLoaded } from "../../shared/ui/parts";
import "./expect.css";

/** How long a move will take and what it will cost, before it is ordered; asked for once, when the dialog opens. */
export function Expect({
  pipeline,
  element,
  target,
  way,
}: {
  pipeline: string;
  element: LiveElement;
  target: string | null;
  way: MoveWay;
}) {
  const path = forecastPath(pipeline, element.id);
  const { data, error } = useLoaded(path, (signal) => get<Forecast>(path, signal));
  const expected = expectation(data, target, way, nameOf(element));
  return (
    <section className="stack stack--tight" aria-label="What to expect">
      <h3 className="field__label">What to expect</h3>
      <dl className="expect">
        {expected ? (
          <>
            <dt>Getting ready</dt>
            <dd>
              <b>{expected.ready ?? "nothing is prepared"}</b>
              <span className="expect__note">
                {expected.readyNote || "It stops first, so all of it is the pause."}
              </span>
            </dd>
            <dt>Pause</dt>
            <dd>
              <b>{expected.pause}</b>
              <span className="expect__note">{expected.pauseNote}</span>
            </dd>
          </>
        ) : (
          <>
            <dt>Getting ready</dt>
            <dd className="muted">{unknownWords(target, data, error)}</dd>
          </>
        )}
      </dl>
    </section>
  );
}

function unknownWords(target: string | null, data: Forecast | undefined, error: unknown): string {
  if (target === null) return "Choose a node.";
  if (data) return `Nothing is known of ${target}.`;
  return error ? "How long it takes could not be asked. It can be moved all the same." : "Asking…";
}
