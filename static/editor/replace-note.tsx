import type { DocElement } from "../shared/types";
import { replaceWords } from "../shared/document";
import { keepAsItIs } from "./edits";
import { commit, current } from "./store";

/** What to do with an element that came with a template. */
export function ReplaceNote({ element, editable }: { element: DocElement; editable: boolean }) {
  const source = Object.keys(element.inputs ?? {}).length === 0;
  return (
    <div className="notice" role="note" aria-label={replaceWords(element)}>
      <div className="stack stack--tight">
        <span>
          <span className="badge badge--accent">{replaceWords(element)}</span>
        </span>
        <span>
          {source
            ? "This source came with the template. Choose a file of your own below, or add another source and connect it to the elements that read this one."
            : "The template leaves this element to you. Set its parameters below."}
        </span>
        {editable && (
          <span>
            <button
              type="button"
              className="button button--small"
              onClick={() => commit(keepAsItIs(current(), element.id))}
            >
              Keep it as it is
            </button>
          </span>
        )}
      </div>
    </div>
  );
}
