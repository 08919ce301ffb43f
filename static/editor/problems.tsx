import { ChevronDown, ChevronUp, CircleAlert, CircleCheck, CircleDashed } from "lucide-react";
import { plural, sentence } from "../shared/format";
import type { Fault } from "../shared/types";
import { showFault, useEditor } from "./store";
import { insist, WAITING } from "./touched";

function show(fault: Fault): void {
  insist([fault]);
  showFault(fault);
}

/** What the line says in place of a number of problems, if there is nothing to mend; otherwise null. */
export function calmWords(faults: readonly Pick<Fault, "code">[]): string | null {
  if (faults.length === 1 && faults[0]?.code === "empty") return "Nothing is drawn yet";
  return faults.length > 0 && faults.every(({ code }) => code === WAITING) ? "Waiting for an import" : null;
}

/** The drawer below the canvas: every fault, one click from its field. */
export function Problems() {
  const faults = useEditor((state) => state.faults);
  const checked = useEditor((state) => state.checked);
  const open = useEditor((state) => state.problemsOpen) && faults.length > 0;
  const calm = calmWords(faults);
  const toggle = () => useEditor.setState({ problemsOpen: !open });
  return (
    <section className="problems" aria-label="Problems">
      <button
        type="button"
        className="problems__bar"
        onClick={toggle}
        aria-expanded={open}
        disabled={faults.length === 0}
      >
        {faults.length > 0 ? (
          <>
            {calm ? (
              <CircleDashed className="muted" aria-hidden="true" />
            ) : (
              <CircleAlert className="problems__bad" aria-hidden="true" />
            )}
            {calm ?? plural(faults.length, "problem")}
            {open ? <ChevronDown aria-hidden="true" /> : <ChevronUp aria-hidden="true" />}
          </>
        ) : (
          <>
            <CircleCheck className="problems__good" aria-hidden="true" />
            {checked ? "No problems" : "Checking"}
          </>
        )}
      </button>
      {open && (
        <ul className="problems__list">
          {faults.map((fault, index) => {
            return (
              <li key={index}>
                <button type="button" className="problems__item" onClick={() => show(fault)}>
                  <b>{fault.title || fault.element || "Pipeline"}</b>
                  <span className="muted">{fault.place}</span>
                  <span>{sentence(fault.message)}</span>
                </button>
              </li>
            );
          })}
        </ul>
      )}
    </section>
  );
}
