import { Component, type ErrorInfo, type ReactNode } from "react";

/** Shows that the page's own code failed, and that running pipelines are not affected. */
export class Boundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override componentDidCatch(error: Error, info: ErrorInfo) {
    console.error(error, info.componentStack);
  }

  override render() {
    if (!this.state.error) return this.props.children;
    return (
      <div className="empty" role="alert">
        <h2>This page stopped working</h2>
        <p>
          {this.state.error.message}. Running pipelines are not affected, and your draft is kept in this
          browser.
        </p>
        <button className="button button--primary" onClick={() => window.location.reload()}>
          Reload the page
        </button>
      </div>
    );
  }
}
