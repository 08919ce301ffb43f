import type { ReactNode } from "react";
import "./frame.css";

/** The frame of a view: breadcrumb and state left, the one primary action right. */
export function Frame({
  crumbs = [],
  title,
  state,
  actions,
  children,
}: {
  crumbs?: [string, string][];
  title: string;
  state?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <div className="page">
      <header className="page__head">
        <nav className="crumbs" aria-label="Breadcrumb">
          {crumbs.map(([name, path]) => (
            <span key={path} className="row">
              <a href={path}>{name}</a>
              <span aria-hidden="true">/</span>
            </span>
          ))}
          <h1 aria-current="page">{title}</h1>
        </nav>
        {state}
        {actions && <div className="actions">{actions}</div>}
      </header>
      <div className="page__body">{children}</div>
    </div>
  );
}

export function Section({
  title,
  aside,
  children,
}: {
  title: string;
  aside?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className="section" aria-label={title}>
      <div className="section__head">
        <h2>{title}</h2>
        <span className="spring" />
        {aside}
      </div>
      {children}
    </section>
  );
}
