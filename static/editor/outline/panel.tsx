/** In the palette's place: the columns of all elements, and what happens to each of them. */
import { useEffect, useMemo, useRef, useState } from "react";
import { Search, X } from "lucide-react";
import { typeWords } from "../../shared/column-types";
import { nameOfId } from "../../shared/document";
import { select, setMode, useEditor } from "../store";
import { columnStories, found, stepWords, type ColumnStory } from "./story";
import "./outline.css";

/** With so few columns left, each shows its steps. */
const OPEN_MAX = 3;

export function openColumns(): void {
  setMode("edit"); // the columns are those of the draft
  useEditor.setState({ columnsOpen: true });
}
const close = (): void => useEditor.setState({ columnsOpen: false });

export function ColumnsPanel() {
  const document = useEditor((state) => state.history.present);
  const operators = useEditor((state) => state.operators);
  const schemas = useEditor((state) => state.schemas);
  const [words, setWords] = useState("");
  const search = useRef<HTMLInputElement>(null);
  const stories = useMemo(() => columnStories(document, operators, schemas), [document, operators, schemas]);
  const shown = found(stories, words);
  const open = words !== "" && shown.length <= OPEN_MAX;
  useEffect(() => search.current?.focus(), []);
  return (
    <aside className="panel columns" aria-label="Columns">
      <header className="columns__head">
        <h2 className="section-title">Columns</h2>
        <button
          type="button"
          className="button button--quiet button--icon button--small"
          aria-label="Close the columns"
          title="Back to the elements to add"
          onClick={close}
        >
          <X aria-hidden="true" />
        </button>
      </header>
      <div className="palette-search">
        <Search aria-hidden="true" />
        <input
          ref={search}
          className="input"
          type="search"
          aria-label="Find a column"
          placeholder="Find a column"
          value={words}
          onChange={(event) => setWords(event.target.value)}
        />
      </div>
      <div className="columns__list">
        {shown.map((story) => (
          <Story key={`${story.name} ${open}`} story={story} open={open} />
        ))}
        {shown.length === 0 && (
          <p className="muted small columns__none">
            {stories.length > 0
              ? "No column has that in its name."
              : "No columns are known yet. Connect elements and fill in their parameters."}
          </p>
        )}
      </div>
    </aside>
  );
}

function Story({ story, open }: { story: ColumnStory; open: boolean }) {
  const document = useEditor((state) => state.history.present);
  const operators = useEditor((state) => state.operators);
  const selected = useEditor((state) => state.selected);
  const { name, type, unit, steps } = story;
  return (
    <details className="columns__column" open={open}>
      <summary>
        <span className="mono ellipsis">{name}</span>
        <span className="muted small">
          {typeWords(type)}
          {unit ? `, ${unit}` : ""}
        </span>
      </summary>
      <ol className="columns__steps">
        {steps.map((step) => (
          <li key={step.element}>
            <button
              type="button"
              className="columns__step"
              data-what={step.what}
              aria-current={selected.has(step.element) || undefined}
              onClick={() => select([step.element])}
            >
              <span className="ellipsis">{nameOfId(document, operators, step.element)}</span>
              <span className="muted small">{stepWords(step)}</span>
            </button>
          </li>
        ))}
      </ol>
    </details>
  );
}
