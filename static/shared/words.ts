/** Words for people in place of names for machines. Pure. */
import { typeWords } from "./column-types";
import { capitalised } from "./format";
import type { Step } from "./types";

const OPTIONS: Record<string, string> = {
  avg: "average",
  min: "minimum",
  max: "maximum",
  stddev: "standard deviation",
  relative_variation: "relative variation, %",
  ">": "above (>)",
  ">=": "at least (>=)",
  "<": "below (<)",
  "<=": "at most (<=)",
  "=": "equal to (=)",
  "!=": "other than (!=)",
};

/** One of a parameter's values to choose from. */
export function optionWords(option: unknown): string {
  const text = String(option);
  const plain = /^[a-z]+([_-][a-z]+)*$/.test(text) ? text.replace(/[_-]/g, " ") : text;
  const words = OPTIONS[text] ?? (typeWords(text) === text ? plain : typeWords(text));
  return capitalised(words);
}

const STEPS: Record<string, string> = {
  validate: "Check the pipeline",
  place: "Choose the nodes",
  topics: "Create the streams",
  start: "Start the elements",
  run: "Wait until all of them run",
  retire: "End the elements",
  deliver: "Deliver what the elements have put out",
  stop: "Stop the elements that still run",
  "delete topics": "Delete the streams",
};

const OF_GROUP: Record<NonNullable<Step["change"]>, string> = { added: "Add ", changed: "", removed: "End " };

/** A step of an operation in words; the steps of an upgrade are groups. `name`: the name of a group. */
export function stepWords(step: Step, name: (id: string) => string): string {
  if (step.regrouped && step.change === "added") return `Continue with ${step.title ?? name(step.name)}`;
  if (step.change) return OF_GROUP[step.change] + (step.title ?? name(step.name));
  return STEPS[step.name] ?? name(step.name);
}

interface Term {
  title: string;
  text: string;
}

/** Terms for engineers, shown under Details with their meaning. */
export const TERMS = {
  epoch: {
    title: "Epoch",
    text: "Counts the owners: it rises by one each time another copy takes over. Only the newest owner can write.",
  },
  seq: {
    title: "Batch",
    text: "The number of the newest committed batch, counted from the deployment. The REST API calls it seq.",
  },
  id: { title: "Id", text: "The element's name in files, topics and the REST API." },
  group: {
    title: "Runs as one with",
    text: "These elements are one query on one node: they move and are restored together.",
  },
  round_trips: {
    title: "Round trips",
    text: "How many messages went to Kafka and back between the commit that hands over and the commit of the first output. Each takes as long as the way to the broker and back.",
  },
  strategy: { title: "How", text: "How the state came to the node that took over." },
  rows_in: { title: "Rows in", text: "Rows read since the element started on its node." },
  rows_out: { title: "Rows out", text: "Rows written since the element started on its node." },
} satisfies Record<string, Term>;
