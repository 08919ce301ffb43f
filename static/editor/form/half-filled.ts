/** Conditions with a row that lacks something: they cannot be written yet, and wait while one looks elsewhere. */
import type { Condition } from "./condition";
import { isComplete } from "./condition-rows";

interface Half {
  /** the expression beside the rows; another one means that it was changed elsewhere */
  text: string;
  condition: Condition;
}

/** By element and path of the parameter, until the page is left. */
const kept = new Map<string, Half>();

const keyOf = (element: string, path: string): string => `${element} ${path}`;

export function keepHalf(element: string, path: string, text: string, condition: Condition): void {
  if (isComplete(condition)) kept.delete(keyOf(element, path));
  else kept.set(keyOf(element, path), { text, condition });
}

/** The rows as they were left; null if they were complete, or the expression is another one now. */
export function halfFilled(element: string, path: string, text: string): Condition | null {
  const half = kept.get(keyOf(element, path));
  return half?.text === text ? half.condition : null;
}
