import { get } from "../shared/api";
import type { Operator } from "../shared/types";

/** What a page of templates shows: what was asked for, and the operators, for their kinds and names. */
export async function withOperators<T>(path: string, signal: AbortSignal) {
  const [found, operators] = await Promise.all([get<T>(path, signal), get<Operator[]>("/operators", signal)]);
  return { found, operators: new Map(operators.map((operator) => [operator.type, operator])) };
}
