declare module "plotly.js-basic-dist-min" {
  export type Trace = Record<string, unknown>;
  export type Layout = Record<string, unknown>;
  const Plotly: {
    react(place: HTMLElement, data: Trace[], layout: Layout, config: Record<string, unknown>): Promise<void>;
    purge(place: HTMLElement): void;
  };
  export default Plotly;
}
