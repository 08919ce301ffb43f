import type { Operator, PipelineDocument } from "../types";

const base = {
  summary: "",
  icon: "",
  docs: "",
  example: {},
  stateful: false,
  follow: "coalesced" as const,
  follow_depends: false,
  view: false,
  delivery: "exactly once" as const,
  delivery_why: "",
  ticks: "none" as const,
  browsed_from: "",
  version: 1,
};

const port = (name: string) => ({ name, description: "", optional: false });

export const OPERATORS = new Map<string, Operator>(
  [
    {
      ...base,
      type: "csv-replay",
      title: "CSV replay",
      category: "sources",
      inputs: [],
      outputs: [port("out")],
      params_schema: { properties: { path: {}, rate: { default: 100 } } },
    },
    {
      ...base,
      type: "filter",
      title: "Filter",
      category: "transform",
      inputs: [port("in")],
      outputs: [port("out")],
      params_schema: { properties: { column: { type: "string", format: "column" } } },
    },
    {
      ...base,
      type: "join",
      title: "Join",
      category: "join",
      inputs: [port("left"), port("right")],
      outputs: [port("out")],
      params_schema: {},
    },
    {
      ...base,
      type: "csv-sink",
      title: "CSV file",
      category: "sinks",
      inputs: [port("in")],
      outputs: [],
      params_schema: {},
    },
  ].map((operator) => [operator.type, operator]),
);

export const DOCUMENT: PipelineDocument = {
  apiVersion: "fogline/v1",
  kind: "Pipeline",
  metadata: { name: "demo" },
  spec: {
    elements: [
      { id: "readings", type: "csv-replay", params: { path: "demo:x" }, ui: { x: 0, y: 0 } },
      {
        id: "big",
        type: "filter",
        inputs: { in: "readings" },
        params: { column: "power" },
        ui: { x: 320, y: 0 },
      },
      { id: "file", type: "csv-sink", inputs: { in: "big" }, ui: { x: 640, y: 0 } },
    ],
    groups: [{ id: "edge-part", elements: ["readings", "big"] }],
  },
};
