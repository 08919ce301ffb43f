/**
 * A field that still asks for a value says so quietly, until the user has been there or has tried to deploy.
 * A field that waits for the import of its file is always quiet. What is wrong with a value is never quiet.
 */
import type { Fault } from "../shared/types";
import { locate } from "../shared/document";
import { current, useEditor, type LocatedFault } from "./store";

/** Codes of faults that say that something is still to be filled in. */
const TO_DO = new Set(["missing", "missing_input", "string_too_short", "too_short"]);

/** The code of a fault that goes by itself, once a file is imported. */
export const WAITING = "waiting";

const keyOf = (element: string, path: string): string => `${element} ${path}`;

export const isQuiet = (
  touched: ReadonlySet<string>,
  element: string,
  { code, local }: Pick<LocatedFault, "code" | "local">,
): boolean => code === WAITING || (TO_DO.has(code ?? "") && !touched.has(keyOf(element, local)));

/** The user leaves a field, whatever is in it. */
export function touch(element: string, path: string): void {
  const { touched } = useEditor.getState();
  const key = keyOf(element, path);
  if (!touched.has(key)) useEditor.setState({ touched: new Set([...touched, key]) });
}

/** The user wants to know about these faults, as after a Deploy that they refuse. */
export function insist(faults: readonly Fault[]): void {
  for (const fault of faults) {
    const { element, path } = locate(current(), fault.path);
    const id = fault.element ?? element;
    if (id) touch(id, path);
  }
}
