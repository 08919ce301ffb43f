import { ChevronDown, ChevronUp, CircleAlert, CircleCheck } from "lucide-react";
import { plural, sentence } from "../shared/format";
import type { Fault } from "../shared/types";
import { showFault, useEditor } from "./store";
import { insist } from "./touched";

function show(fault: Fault): void {
  insist([fault]);
  showFault(fault);
}

/** The drawer below the canvas: every fault, one click from its field. */
export function Problems() {
  const faults = useEditor((state) => state.faults);
  const checked = useEditor((state) => state.checked);
  const open = useEditor((state) => state.problemsOpen) && faults.length > 0;
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
            <CircleAlert className="problems__bad" aria-hidden="true" />
            {plural(faults.length, "problem")}
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
