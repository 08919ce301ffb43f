import type { ReactNode } from "react";
import { TERMS } from "../words";
import { Tip } from "./parts";
import "./details.css";

/** Details for engineers, folded away. Each term is explained on hover, on focus, or on request. */
export function Details({
  children,
  title = "Details",
  onToggle,
}: {
  children: ReactNode;
  title?: string;
  onToggle?: (open: boolean) => void;
}) {
  return (
    <details className="details" onToggle={(event) => onToggle?.(event.currentTarget.open)}>
      <summary>{title}</summary>
      <div className="details__body">{children}</div>
    </details>
  );
}

export function TermWord({ term }: { term: keyof typeof TERMS }) {
  const { title, text } = TERMS[term];
  return (
    <Tip text={text}>
      <button type="button" className="term" aria-description={text}>
        {title}
      </button>
    </Tip>
  );
}

export function TermList({ children }: { children: ReactNode }) {
  return <dl className="terms num">{children}</dl>;
}

export function Term({ term, children }: { term: keyof typeof TERMS; children: ReactNode }) {
  return (
    <div>
      <dt>
        <TermWord term={term} />
      </dt>
      <dd>{children}</dd>
    </div>
  );
}
