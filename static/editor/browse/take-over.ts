/** What is ticked becomes parameters of the element, in one step of undo. */
import { post } from "../../shared/api";
import type { Asker } from "../../shared/asker";
import type { DocElement, FoundThing, SchemaField, Taken } from "../../shared/types";
import { changeElement } from "../edits";
import { commit, current } from "../store";

interface Ticked {
  connection: string;
  element: DocElement;
  /** those of its input */
  columns: readonly SchemaField[];
  ticked: readonly FoundThing[];
}

/** Changes the element, unless `asker` is stopped before the answer. Then neither `done` nor `fail` is called. */
export function takeOver(
  asker: Asker,
  { connection, element, columns, ticked }: Ticked,
  done: () => void,
  fail: (error: unknown) => void,
): void {
  const path = `/operators/${encodeURIComponent(element.type)}/taken`;
  const body = { params: { ...element.params, connection }, ticked, columns };
  asker.ask(
    (signal) => post<Taken>(path, body, signal),
    ({ params }) => {
      commit(changeElement(current(), element.id, { params }));
      done();
    },
    fail,
  );
}
