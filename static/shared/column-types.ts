/** Column types as people call them. */
const WORDS: Record<string, string> = {
  integer: "whole number",
  number: "number",
  string: "text",
  boolean: "true or false",
  timestamp: "time",
};

export const typeWords = (type: string): string => WORDS[type] ?? type;

/** "a number", "text or a time"; whole numbers are numbers. */
export function typesNeeded(types: readonly string[]): string {
  const wanted = types.includes("number") ? types.filter((type) => type !== "integer") : types;
  return wanted
    .map((type) => (type === "string" || type === "boolean" ? typeWords(type) : `a ${typeWords(type)}`))
    .join(" or ");
}
