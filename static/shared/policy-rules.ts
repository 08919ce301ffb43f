/**
 * The fields of each kind of policy: usual and allowed values, and the conversion between typed text and
 * rules. Pure.
 */
import { typedNumber } from "./numbers";
import type { Policy } from "./types";

export type Rule = Policy["rule"];
export type Kind = Rule["kind"];
/** What stands in the fields, by their names. */
export type Typed = Record<string, string>;

interface Common {
  name: string;
  label: string;
  usual: string;
}
export interface NumberField extends Common {
  type: "number";
  least: number;
  most: number;
  unit: string;
  /** 0..1 in the rule, typed as a percentage */
  ratio?: boolean;
  /** shown when it is empty, which is allowed and is null in the rule */
  empty?: string;
}
export interface ChoiceField extends Common {
  type: "choice";
  options: [string, string][];
  /** in the rule it is true where "yes" is chosen */
  yesNo?: boolean;
}
/**
 * `known`: the kind of the name. "where": a node or a site, as chosen in the field "of". "elements":
 * elements of the pipeline in the field "pipeline".
 */
export interface NameField extends Common {
  type: "name";
  known: "where" | "pipelines" | "elements";
  /** it may be empty, which says so */
  empty?: string;
}
/** In UTC, as 2026-11-26 02:00. */
export interface MomentField extends Common {
  type: "moment";
}
export type Field = NumberField | ChoiceField | NameField | MomentField;

const number = (
  name: string,
  label: string,
  usual: string,
  [least, most]: [number, number],
  unit: string,
): NumberField => ({ type: "number", name, label, usual, least, most, unit });

const threshold = (label: string, usual: string, range: [number, number]): NumberField => ({
  ...number("threshold", label, usual, range, " %"),
  ratio: true,
});

const forAtLeast = (least: number, usual: string): NumberField =>
  number("for_s", "For at least, in seconds", usual, [least, 1800], " s");

const DAY_MINUTES = 24 * 60;

interface KindSpec {
  /** continues "When" */
  when: string;
  /** an hour, as usual */
  moves: string;
  fields: readonly Field[];
  /** a note on a trial with the last day */
  tried?: string;
}

export const KINDS: Record<Kind, KindSpec> = {
  cpu: {
    when: "a node's CPU is too busy",
    moves: "6",
    fields: [threshold("CPU above, in percent", "80", [20, 99]), forAtLeast(30, "60")],
  },
  battery: {
    when: "a node's battery runs down",
    moves: "60",
    fields: [threshold("Battery below, in percent", "20", [1, 90]), forAtLeast(0, "0")],
  },
  maintenance: {
    when: "a node or a site must be empty for maintenance",
    moves: "60",
    tried: "As if the maintenance had been in the last day, at the same time of day.",
    fields: [
      {
        type: "choice",
        name: "of",
        label: "Empty",
        usual: "node",
        options: [
          ["node", "a node"],
          ["site", "all nodes of a site"],
        ],
      },
      { type: "name", name: "name", label: "Its name", usual: "", known: "where" },
      { type: "moment", name: "begins", label: "From (UTC)", usual: "" },
      number("minutes", "For how many minutes", "120", [1, 7 * DAY_MINUTES], " min"),
      {
        type: "choice",
        name: "weekly",
        label: "How often",
        usual: "no",
        options: [
          ["no", "once"],
          ["yes", "every week, at the same time"],
        ],
        yesNo: true,
      },
      number("lead_minutes", "Elements leave so many minutes before", "30", [0, DAY_MINUTES], " min"),
    ],
  },
  latency: {
    when: "an element takes longer than it may",
    moves: "6",
    tried: "The latency on another node cannot be known, so only the first move of each element is shown.",
    fields: [
      { type: "name", name: "pipeline", label: "Pipeline", usual: "", known: "pipelines" },
      {
        type: "name",
        name: "element",
        label: "Element",
        usual: "",
        known: "elements",
        empty: "every element of the pipeline",
      },
      number("ms", "Slowest 5 % of batches take more than, in milliseconds", "1000", [1, 600_000], " ms"),
      forAtLeast(30, "60"),
    ],
  },
  spread: {
    when: "one node is much busier than another",
    moves: "6",
    fields: [
      {
        ...number("difference", "CPU differs by more than, in percentage points", "40", [20, 90], " points"),
        ratio: true,
      },
      forAtLeast(30, "300"),
    ],
  },
  pack: {
    when: "fewer nodes are enough",
    moves: "6",
    fields: [threshold("CPU stays 10 points below, in percent", "80", [20, 99]), forAtLeast(30, "600")],
  },
  apart: {
    when: "too much of one pipeline runs on one node",
    moves: "6",
    fields: [
      { type: "name", name: "pipeline", label: "Pipeline", usual: "", known: "pipelines" },
      {
        ...number("most", "Groups on one node, at most", "", [1, 100], ""),
        empty: "half of them, rounded up",
      },
    ],
  },
  follow: {
    when: "the user of an element is elsewhere",
    moves: "12",
    tried: "From the places of its user that were reported.",
    fields: [
      { type: "name", name: "pipeline", label: "Pipeline", usual: "", known: "pipelines" },
      { type: "name", name: "element", label: "Element", usual: "", known: "elements" },
      {
        type: "choice",
        name: "along",
        label: "What moves with it",
        usual: "no",
        options: [
          ["no", "nothing"],
          ["yes", "the elements that read only from it, unless they are pinned"],
        ],
        yesNo: true,
      },
      number("for_s", "Its user has been at the site for at least, in seconds", "60", [0, 1800], " s"),
    ],
  },
  sites: {
    when: "a site comes or goes",
    moves: "6",
    tried:
      "With the elements that are copied to each site now. A site that was not there at first counts as one that came later.",
    fields: [
      {
        type: "name",
        name: "pipeline",
        label: "Pipeline",
        usual: "",
        known: "pipelines",
        empty: "every pipeline with copies at each site",
      },
      number("for_s", "A site has been there for at least, in seconds", "120", [0, 1800], " s"),
      number("gone_s", "A site is gone after silence of, in seconds", "600", [0, 86_400], " s"),
      {
        type: "choice",
        name: "gone",
        label: "What happens to its copies",
        usual: "wait",
        options: [
          ["wait", "they wait for it"],
          ["take-out", "they are taken out of the pipeline"],
          ["elsewhere", "they continue on other nodes"],
        ],
      },
    ],
  },
};

export const usual = (kind: Kind): Typed =>
  Object.fromEntries(KINDS[kind].fields.map(({ name, usual }) => [name, usual]));

/** "2026-11-26 02:00", as UTC, of a text that Date reads. */
export const momentText = (at: string): string => new Date(at).toISOString().slice(0, 16).replace("T", " ");

/** The opposite of momentText: an ISO time; null when the text is not a time. */
export function momentOf(text: string): string | null {
  if (!/^\d{4}-\d\d-\d\d[ T]\d\d:\d\d$/.test(text.trim())) return null;
  const at = Date.parse(`${text.trim().replace(" ", "T")}:00Z`);
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}

/** The texts in the fields of an existing policy. */
export function typedOf(rule: Rule): Typed {
  const values = rule as unknown as Record<string, unknown>;
  const shown = (field: Field): string => {
    const value = values[field.name];
    if (field.type === "number" && field.ratio) return String(Math.round(Number(value) * 100));
    if (field.type === "choice" && field.yesNo) return value ? "yes" : "no";
    return field.type === "moment" ? momentText(String(value)) : String(value ?? "");
  };
  return Object.fromEntries(KINDS[rule.kind].fields.map((field) => [field.name, shown(field)]));
}

/** What is wrong with a number that somebody typed. */
export function numberFault(
  text: string,
  { least, most, unit, ratio, empty }: Pick<NumberField, "least" | "most" | "unit" | "ratio" | "empty">,
): string | undefined {
  if (empty !== undefined && text.trim() === "") return undefined;
  const value = typedNumber(text);
  if (!(value >= least && value <= most)) return `Enter a number between ${least} and ${most}${unit}.`;
  return ratio || Number.isInteger(value) ? undefined : "Enter a whole number.";
}

function faultOf(field: Field, text: string): string | undefined {
  if (field.type === "number") return numberFault(text, field);
  if (field.type === "moment")
    return momentOf(text) ? undefined : "Enter a day and a time, such as 2026-11-26 02:00.";
  return field.type === "name" && field.empty === undefined && !text.trim() ? "Enter a name." : undefined;
}

function valueOf(field: Field, text: string): unknown {
  if (field.type === "number" && field.empty !== undefined && text.trim() === "") return null;
  if (field.type === "number") return field.ratio ? typedNumber(text) / 100 : typedNumber(text);
  if (field.type === "moment") return momentOf(text);
  if (field.type === "choice" && field.yesNo) return text === "yes";
  return text.trim();
}

/** The rule, or what is wrong with the fields, by name; the server looks at it as well. */
export function ruleOf(kind: Kind, typed: Typed): { rule: Rule | null; faults: Typed } {
  const rule: Record<string, unknown> = { kind };
  const faults: Typed = {};
  for (const field of KINDS[kind].fields) {
    const text = typed[field.name] ?? "";
    const fault = faultOf(field, text);
    if (fault) faults[field.name] = fault;
    rule[field.name] = valueOf(field, text);
  }
  return { rule: Object.keys(faults).length ? null : (rule as unknown as Rule), faults };
}
