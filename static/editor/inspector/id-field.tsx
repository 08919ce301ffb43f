/** The element's id, which can be changed. */
import { useState } from "react";
import { nameFault } from "../../shared/names";
import type { DocElement } from "../../shared/types";
import { findElement } from "../../shared/document";
import { renameElement } from "../edits";
import { commit, current, select } from "../store";

export function IdField({ element, editable }: { element: DocElement; editable: boolean }) {
  const [text, setText] = useState(element.id);
  const [error, setError] = useState("");
  const take = () => {
    if (text === element.id) return setError("");
    const wrong = nameFault(text);
    if (wrong) return setError(wrong);
    if (findElement(current(), text)) return setError(`Another element has the id ${text}.`);
    setError("");
    commit(renameElement(current(), element.id, text));
    select([text]);
  };
  return (
    <label className="field" data-path="id">
      <span className="field__label">Id</span>
      <input
        className="input mono"
        value={text}
        readOnly={!editable}
        aria-invalid={error !== ""}
        spellCheck={false}
        onChange={(event) => setText(event.target.value)}
        onBlur={take}
        onKeyDown={(event) => event.key === "Enter" && take()}
      />
      {error ? (
        <span className="field__error">{error}</span>
      ) : (
        <span className="field__help">The name in files, topics and the REST API.</span>
      )}
    </label>
  );
}
