/** A file parameter that is a table, and the parameters that follow from it. Pure. */
import type { JsonSchema } from "../../shared/types";

/** `x-table` of an operator's file parameter. */
export interface TableHint {
  /** what is set beside, of a file whose rows have no time */
  without_time: Record<string, unknown>;
}

type Params = Record<string, unknown>;

export const tableOf = (schema: JsonSchema): TableHint | null => (schema["x-table"] as TableHint) ?? null;

/** The changes that go with a file with or without times. What was set for one without is taken back. */
export function timed(table: TableHint, hasTime: boolean, params: Params): Params {
  const changes: Params = {};
  for (const [name, value] of Object.entries(table.without_time)) {
    if (hasTime && params[name] === value) changes[name] = undefined;
    if (!hasTime && params[name] == null) changes[name] = value;
  }
  return changes;
}

/** With the changes; an undefined value takes its parameter out, so that the operator's default holds. */
export function patched(params: Params, changes: Params): Params {
  return Object.fromEntries(
    Object.entries({ ...params, ...changes }).filter(([, value]) => value !== undefined),
  );
}
