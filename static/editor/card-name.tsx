import { useRef } from "react";
import type { DocElement, Operator } from "../shared/types";
import { displayName } from "../shared/document";
import { changeElement } from "./edits";
import { commit, current, useEditor } from "./store";
import { focusCard } from "./view";

interface Props {
  element: DocElement;
  operator: Operator | undefined;
}

/** What an element is called on its card; after F2 or a double click, a field for it. */
export function CardName({ element, operator }: Props) {
  const renaming = useEditor((state) => state.renaming === element.id && state.mode === "edit");
  if (renaming) return <NameField element={element} operator={operator} />;
  const name = displayName(element, operator);
  return (
    <span className="el-card__title" title={name}>
      {name}
    </span>
  );
}

function NameField({ element, operator }: Props) {
  const before = displayName(element, operator);
  const over = useRef(false);
  const end = (text: string | null) => {
    if (over.current) return; // a field that goes loses the focus, too
    over.current = true;
    useEditor.setState({ renaming: null });
    const title = text?.trim();
    if (title !== undefined && title !== before)
      commit(changeElement(current(), element.id, { title: title || null }));
  };
  return (
    <input
      className="el-card__title el-card__name nodrag nopan"
      aria-label={`Name of ${before}`}
      defaultValue={before}
      maxLength={120}
      spellCheck={false}
      autoFocus
      onFocus={(event) => event.target.select()}
      onBlur={(event) => end(event.target.value)}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== "Escape") return;
        event.preventDefault();
        end(event.key === "Enter" ? event.currentTarget.value : null);
        focusCard(element.id);
      }}
    />
  );
}
