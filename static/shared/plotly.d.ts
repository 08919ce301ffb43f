declare module "plotly.js-basic-dist-min" {
  export type Trace = Record<string, unknown>;
  export type Layout = Record<string, unknown>;
  /** the place, once something is drawn in it */
  export interface Plot extends HTMLElement {
    on(event: string, listener: (change: Record<string, unknown>) => void): void;
    removeAllListeners(event: string): void;
  }
  const Plotly: {
    react(place: HTMLElement, data: Trace[], layout: Layout, config: Record<string, unknown>): Promise<Plot>;
    purge(place: HTMLElement): void;
  };
  export default Plotly;
}
