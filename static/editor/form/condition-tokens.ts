/** The words of an expression, as `pipeline_runtime/operators/expressions/syntax.py` splits it. Pure. */

/** Rows cannot show an expression. The message ends the sentence "This cannot be shown as rows: …". */
export class Unshown extends Error {}

export interface Token {
  kind: "number" | "string" | "quoted" | "name" | "keyword" | "symbol" | "end";
  /** without quotes */
  text: string;
  /** counted from 1 */
  character: number;
}

const KEYWORDS = new Set(
  "and or not is null in between like case when then else end cast as true false".split(" "),
);
/** Names that mean a value of another run unless they are quoted. */
const NOT_REPEATABLE =
  `now current_timestamp current_date current_time localtimestamp curdate current_timezone today
  getdate sysdate unix_timestamp rand randn random randstr uniform uuid shuffle monotonically_increasing_id
  spark_partition_id input_file_name input_file_block_start input_file_block_length current_user session_user
  current_catalog current_database current_schema`.split(/\s+/);

export const READ = {
  plainName: /^[A-Za-z_][A-Za-z0-9_]*$/,
  reserved: new Set([...KEYWORDS, ...NOT_REPEATABLE]),
  arithmetic: new Set(["+", "-", "*", "/", "%", "||"]),
};

const NUMBER = String.raw`(?<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![A-Za-z_]))`;
const STRING = String.raw`(?<string>'(?:[^']|'')*'|"(?:[^"]|"")*")`;
const QUOTED = "(?<quoted>`(?:[^`]|``)+`)";
const NAME = "(?<name>[A-Za-z_][A-Za-z0-9_]*)";
const SYMBOL = String.raw`(?<symbol><=|>=|<>|!=|==|\|\||&&|[-+*/%=<>(),])`;
const TOKEN = new RegExp(String.raw`\s*(?:${[NUMBER, STRING, QUOTED, NAME, SYMBOL].join("|")})`, "y");
const SAME: Readonly<Record<string, string>> = { "==": "=", "<>": "!=", "&&": "and" };

export function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (text.slice(at).trim()) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    const [kind, found] = Object.entries(match?.groups ?? {}).find(([, each]) => each !== undefined) ?? [];
    if (!match || !kind || found === undefined) {
      const start = at + text.slice(at).search(/\S/);
      throw new Unshown(`${text.slice(start, start + 12)} at character ${start + 1} cannot be read`);
    }
    const character = at + match[0].length - found.length + 1;
    tokens.push(named(kind as Token["kind"], found, character));
    at = TOKEN.lastIndex;
  }
  return [...tokens, { kind: "end", text: "", character: text.length + 1 }];
}

function named(kind: Token["kind"], found: string, character: number): Token {
  if (kind === "string" || kind === "quoted") {
    const quote = found.charAt(0);
    return { kind, text: found.slice(1, -1).replaceAll(quote + quote, quote), character };
  }
  if (kind === "name" && KEYWORDS.has(found.toLowerCase()))
    return { kind: "keyword", text: found.toLowerCase(), character };
  const text = SAME[found] ?? found;
  return { kind, text, character };
}
