import { useShallow } from "zustand/react/shallow";
import { count, listed } from "../../shared/format";
import { useLive } from "../../shared/live";
import type { LiveElement } from "../../shared/types";
import { Details, Term, TermList } from "../../shared/ui/details";

/** Figures of an element that only engineers need. */
export function ForEngineers({ pipeline, element }: { pipeline: string; element: LiveElement }) {
  const together = useLive(
    useShallow((state) =>
      (state.elements[pipeline] ?? [])
        .filter((each) => each.group === element.group && each.id !== element.id)
        .map((each) => each.title),
    ),
  );
  return (
    <Details>
      <TermList>
        <Term term="id">
          <code className="mono">{element.id}</code>
        </Term>
        <Term term="epoch">{element.epoch ?? "–"}</Term>
        <Term term="seq">{element.seq ?? "–"}</Term>
        <Term term="rows_in">{count(element.rows_in_total)}</Term>
        <Term term="rows_out">{count(element.rows_out_total)}</Term>
        {together.length > 0 && <Term term="group">{listed(together)}</Term>}
      </TermList>
    </Details>
  );
}
