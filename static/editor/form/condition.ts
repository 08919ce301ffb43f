/**
 * A condition as rows of column, comparison and values, and the text of its expression. Pure.
 *
 * The grammar is a part of that of `pipeline_runtime/operators/expressions/syntax.py`. What rows cannot show
 * is refused with why, and stays text.
 */
import { withPoint } from "../../shared/numbers";
import type { SchemaField } from "../../shared/types";
import { READ, tokensOf, Unshown, type Token } from "./condition-tokens";

export type ValueKind = "number" | "text" | "time" | "column";

/** `text`: as it is typed, without quotes. A number keeps its digits, a time has no `cast`. */
export interface Value {
  kind: ValueKind;
  text: string;
  /** nobody has typed it yet, so it is no empty text */
  blank?: true;
}

export interface Row {
  column: string;
  comparison: string;
  values: Value[];
}

/** Rows of one group are joined by `inner`, and groups by the other word. */
export interface Condition {
  inner: "and" | "or";
  groups: Row[][];
}

export type ReadCondition = { condition: Condition; why: null } | { condition: null; why: string };

interface Comparison {
  words: string;
  /** of the column; null: any */
  types: SchemaField["type"][] | null;
  /** null: one or more */
  values: number | null;
  /** what is true where this one is false; none of the two is true for null */
  opposite: string;
  write: (column: string, values: string[]) => string;
}

const ORDERED: SchemaField["type"][] = ["integer", "number", "timestamp"];
const COMPARED: SchemaField["type"][] = [...ORDERED, "string"];

const sign = (
  symbol: string,
  words: string,
  opposite: string,
  types: SchemaField["type"][],
): [string, Comparison] => [
  symbol,
  { words, types, values: 1, opposite, write: (column, [value]) => `${column} ${symbol} ${value}` },
];

const search = (
  name: string,
  words: string,
  others: string,
  write: Comparison["write"],
): [string, Comparison][] => [
  [name, { words, types: ["string"], values: 1, opposite: `not ${name}`, write }],
  [
    `not ${name}`,
    {
      words: others,
      types: ["string"],
      values: 1,
      opposite: name,
      write:
        name === "like"
          ? (column, [value]) => `${column} not like ${value}`
          : (column, values) => `not ${write(column, values)}`,
    },
  ],
];

const bare = (
  name: string,
  words: string,
  opposite: string,
  types: SchemaField["type"][] | null,
  write: Comparison["write"],
): [string, Comparison] => [name, { words, types, values: 0, opposite, write }];

const called =
  (name: string): Comparison["write"] =>
  (column, [value]) =>
    `${name}(${column}, ${value})`;

/** All comparisons, in the order in which they are offered. */
const COMPARISONS: ReadonlyMap<string, Comparison> = new Map([
  sign(">", "is above (>)", "<=", ORDERED),
  sign(">=", "is at least (>=)", "<", ORDERED),
  sign("<", "is below (<)", ">=", ORDERED),
  sign("<=", "is at most (<=)", ">", ORDERED),
  sign("=", "is (=)", "!=", COMPARED),
  sign("!=", "is not (!=)", "=", COMPARED),
  ...search("contains", "contains", "does not contain", called("contains")),
  ...search("startswith", "starts with", "does not start with", called("startswith")),
  ...search("endswith", "ends with", "does not end with", called("endswith")),
  ...search("like", "is like (% any text)", "is not like (% any text)", (column, [value]) => {
    return `${column} like ${value}`;
  }),
  [
    "between",
    {
      words: "is from … to …",
      types: ORDERED,
      values: 2,
      opposite: "not between",
      write: (column, [low, high]) => `${column} between ${low} and ${high}`,
    },
  ],
  [
    "not between",
    {
      words: "is not from … to …",
      types: ORDERED,
      values: 2,
      opposite: "between",
      write: (column, [low, high]) => `${column} not between ${low} and ${high}`,
    },
  ],
  [
    "in",
    {
      words: "is one of",
      types: COMPARED,
      values: null,
      opposite: "not in",
      write: (column, values) => `${column} in (${values.join(", ")})`,
    },
  ],
  [
    "not in",
    {
      words: "is none of",
      types: COMPARED,
      values: null,
      opposite: "in",
      write: (column, values) => `${column} not in (${values.join(", ")})`,
    },
  ],
  bare("true", "is true", "false", ["boolean"], (column) => column),
  bare("false", "is false", "true", ["boolean"], (column) => `not ${column}`),
  bare("null", "has no value", "not null", null, (column) => `${column} is null`),
  bare("not null", "has a value", "null", null, (column) => `${column} is not null`),
]);

const comparisonOf = (name: string): Comparison => COMPARISONS.get(name) as Comparison;

/** How many values a comparison takes; null: one or more. */
export const valuesOf = (name: string): number | null => comparisonOf(name).values;

export const comparisonWords = (name: string): string => comparisonOf(name).words;

/** The comparisons that a column of this type can have. `undefined`: the type is not known, so all. */
export const comparisonsFor = (type: SchemaField["type"] | undefined): string[] =>
  [...COMPARISONS]
    .filter(([, { types }]) => type === undefined || types === null || types.includes(type))
    .map(([name]) => name);

/** Reads an expression. */
export function readCondition(text: string): ReadCondition {
  try {
    if (!text.trim()) return { condition: { inner: "and", groups: [] }, why: null };
    return { condition: grouped(new Reader(tokensOf(text)).whole()), why: null };
  } catch (error) {
    if (error instanceof Unshown) return { condition: null, why: error.message };
    throw error;
  }
}

/** Its expression. `readCondition` reads it as the same rows, perhaps in fewer groups. */
export function writeCondition({ inner, groups }: Condition): string {
  const outer = inner === "and" ? "or" : "and";
  const filled = groups.filter((group) => group.length > 0);
  const written = filled.map((group) => {
    const text = group.map(writeRow).join(` ${inner} `);
    return group.length > 1 && filled.length > 1 ? `(${text})` : text;
  });
  return written.join(` ${outer} `);
}

const writeRow = ({ column, comparison, values }: Row): string =>
  comparisonOf(comparison).write(writeName(column), values.map(writeValue));

function writeValue({ kind, text }: Value): string {
  if (kind === "number") return withPoint(text);
  if (kind === "column") return writeName(text);
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return kind === "time" ? `cast(${quoted} as timestamp)` : quoted;
}

const writeName = (name: string): string =>
  READ.plainName.test(name) && !READ.reserved.has(name.toLowerCase())
    ? name
    : `\`${name.replaceAll("`", "``")}\``;

/** A part of a condition, as deep as it is written. */
type Tree = Row | { join: "and" | "or"; parts: Tree[] };

const isRow = (tree: Tree): tree is Row => !("join" in tree);

/** `a and (b and c)` has three parts. */
const joined = (join: "and" | "or", parts: Tree[]): Tree =>
  parts.length === 1
    ? (parts[0] as Tree)
    : { join, parts: parts.flatMap((part) => (!isRow(part) && part.join === join ? part.parts : [part])) };

function grouped(tree: Tree): Condition {
  if (isRow(tree)) return { inner: "and", groups: [[tree]] };
  if (tree.parts.every(isRow)) return { inner: tree.join, groups: [tree.parts] };
  const groups = tree.parts.map((part) => {
    if (isRow(part)) return [part];
    if (!part.parts.every(isRow)) throw new Unshown("it nests and / or more than once");
    return part.parts;
  });
  return { inner: tree.join === "and" ? "or" : "and", groups };
}

/** Swaps the sides: `5 < a` is `a > 5`. */
const SWAPPED: Readonly<Record<string, string>> = {
  "=": "=",
  "!=": "!=",
  "<": ">",
  "<=": ">=",
  ">": "<",
  ">=": "<=",
};
const SEARCHES: readonly string[] = ["contains", "startswith", "endswith"];

type Operand = Value | { kind: "boolean"; text: "true" | "false" };

/** A recursive descent parser with one method per level of precedence, loosest first. */
class Reader {
  private at = 0;

  constructor(private readonly tokens: Token[]) {}

  whole(): Tree {
    const tree = this.disjunction();
    if (this.next.kind !== "end") this.fail();
    return tree;
  }

  private get next(): Token {
    return this.tokens[this.at] as Token;
  }

  /** Whether a parenthesis follows the next token. */
  private get called(): boolean {
    const after = this.tokens[this.at + 1];
    return after?.kind === "symbol" && after.text === "(";
  }

  /** The next token's text if it is one of these keywords or symbols. */
  private take(...texts: string[]): string | null {
    const { kind, text } = this.next;
    if (!(kind === "keyword" || kind === "symbol") || !texts.includes(text)) return null;
    this.at += 1;
    return text;
  }

  private expect(text: string): void {
    if (this.take(text) === null) this.fail();
  }

  private fail(): never {
    const { kind, text } = this.next;
    if (kind === "symbol" && READ.arithmetic.has(text)) throw new Unshown(`it computes with ${text}`);
    if (kind === "keyword" && (text === "case" || text === "cast")) throw new Unshown(`it uses ${text}`);
    throw new Unshown(
      kind === "end" ? "it is not complete" : `it has ${text} at character ${this.next.character}`,
    );
  }

  private disjunction(): Tree {
    const parts = [this.conjunction()];
    while (this.take("or")) parts.push(this.conjunction());
    return joined("or", parts);
  }

  private conjunction(): Tree {
    const parts = [this.negation()];
    while (this.take("and")) parts.push(this.negation());
    return joined("and", parts);
  }

  private negation(): Tree {
    let negated = false;
    while (this.take("not")) negated = !negated;
    const tree = this.comparison();
    if (!negated) return tree;
    if (!isRow(tree)) throw new Unshown("it has not before parentheses");
    return { ...tree, comparison: comparisonOf(tree.comparison).opposite };
  }

  private comparison(): Tree {
    if (this.take("(")) {
      const tree = this.disjunction();
      this.expect(")");
      return tree;
    }
    const { kind, text } = this.next;
    if (kind === "name" && this.called) return this.search(text.toLowerCase());
    const left = this.operand();
    const symbol = this.take(...Object.keys(SWAPPED));
    if (symbol) return compared(left, symbol, this.operand());
    if (left.kind !== "column") throw new Unshown("it has a value that no column is compared with");
    if (this.take("is")) {
      const negated = this.take("not") !== null;
      this.expect("null");
      return { column: left.text, comparison: negated ? "not null" : "null", values: [] };
    }
    const not = this.take("not") ? "not " : "";
    return this.membership(left.text, not);
  }

  private membership(column: string, not: string): Row {
    if (this.take("in")) {
      this.expect("(");
      const values = [this.value()];
      while (this.take(",")) values.push(this.value());
      this.expect(")");
      return { column, comparison: `${not}in`, values };
    }
    if (this.take("between")) {
      const low = this.value();
      this.expect("and");
      return { column, comparison: `${not}between`, values: [low, this.value()] };
    }
    if (this.take("like")) {
      const pattern = this.value();
      if (pattern.kind !== "text") throw new Unshown("it has a pattern of like without quotes");
      return { column, comparison: `${not}like`, values: [pattern] };
    }
    if (not) this.fail();
    return { column, comparison: "true", values: [] };
  }

  private search(name: string): Row {
    if (!SEARCHES.includes(name)) throw new Unshown(`it uses the function ${name}`);
    this.at += 1;
    this.expect("(");
    const column = this.operand();
    this.expect(",");
    const value = this.value();
    this.expect(")");
    if (column.kind !== "column") throw new Unshown(`it uses ${name} without a column`);
    return { column: column.text, comparison: name, values: [value] };
  }

  private value(): Value {
    const operand = this.operand();
    if (operand.kind === "boolean") throw new Unshown(`it has ${operand.text} in a list`);
    return operand;
  }

  private operand(): Operand {
    const operand = this.primary();
    if (this.next.kind === "symbol" && READ.arithmetic.has(this.next.text)) this.fail();
    return operand;
  }

  private primary(): Operand {
    const signs = [];
    while (this.next.kind === "symbol" && "+-".includes(this.next.text)) signs.push(this.take("+", "-"));
    const { kind, text } = this.next;
    if (signs.length > 0 && kind !== "number") throw new Unshown(`it computes with ${signs.at(-1)}`);
    if (kind === "number") {
      this.at += 1;
      const negative = signs.filter((each) => each === "-").length % 2 === 1;
      return { kind: "number", text: negative ? `-${text}` : text };
    }
    if (kind === "string") {
      this.at += 1;
      return { kind: "text", text };
    }
    if (kind === "name" && this.called) throw new Unshown(`it uses the function ${text.toLowerCase()}`);
    if (kind === "name" || kind === "quoted") {
      this.at += 1;
      return { kind: "column", text };
    }
    const truth = this.take("true", "false");
    if (truth) return { kind: "boolean", text: truth as "true" | "false" };
    return this.time();
  }

  /** `cast('2024-05-01' as timestamp)` */
  private time(): Value {
    const start = this.at;
    if (this.take("cast") && this.take("(") && this.next.kind === "string") {
      const { text } = this.next;
      this.at += 1;
      const type = this.take("as") && this.next;
      if (type && type.kind === "name" && type.text.toLowerCase() === "timestamp") {
        this.at += 1;
        this.expect(")");
        return { kind: "time", text };
      }
    }
    this.at = start;
    return this.fail();
  }
}

function compared(left: Operand, symbol: string, right: Operand): Row {
  if (left.kind !== "column") {
    if (right.kind !== "column") throw new Unshown("it compares two values");
    return compared(right, SWAPPED[symbol] as string, left);
  }
  if (right.kind !== "boolean") return { column: left.text, comparison: symbol, values: [right] };
  if (symbol !== "=" && symbol !== "!=") throw new Unshown(`it compares with ${right.text} by ${symbol}`);
  const same = symbol === "=" ? right.text : comparisonOf(right.text).opposite;
  return { column: left.text, comparison: same, values: [] };
}
