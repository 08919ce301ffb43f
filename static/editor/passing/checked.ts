/** What the editor knows of the streams that it shows: of the draft, or of what runs. */
import type { PortRef } from "../../shared/document";
import type { Fault } from "../../shared/types";
import { faultsOf, shown, type useEditor } from "../store";
import { isOfInput, passing, passingWords, type Checked, type Place } from "./passing";

type State = ReturnType<typeof useEditor.getState>;

/** Nobody knows the columns of a version that is compared. *Live* has those of what runs. */
export const hasColumns = ({ mode, looked, running }: State): boolean =>
  !looked && (mode === "edit" || running !== null);

const NO_FAULTS: Fault[] = [];

export function checkedOf(state: State): Checked {
  const { mode, checked, history, operators, schemas, running, faults } = state;
  return mode === "live"
    ? { document: shown(state), operators, schemas: running ?? {}, faults: NO_FAULTS }
    : { document: checked ?? history.present, operators, schemas, faults };
}

let said: { checked: Checked; words: Map<string, string> } | null = null;

/**
 * The text of a place for a screen reader; empty where nobody knows the columns. Made once for each check, for
 * all streams ask at each change, as in each frame of a drag.
 */
export function wordsAt(state: State, place: Place): string {
  if (!hasColumns(state)) return "";
  const checked = checkedOf(state);
  if (!said || !isSame(said.checked, checked)) said = { checked, words: new Map() };
  const key = `${place.side} ${place.element}.${place.port}`;
  let words = said.words.get(key);
  if (words === undefined) {
    words = passingWords(passing(checked, place));
    said.words.set(key, words);
  }
  return words;
}

const isSame = (a: Checked, b: Checked): boolean =>
  a.document === b.document &&
  a.operators === b.operators &&
  a.schemas === b.schemas &&
  a.faults === b.faults;

/** Whether an input cannot take what comes. */
export const isWrongAt = (state: State, { element, port }: PortRef): boolean => {
  if (!hasColumns(state)) return false;
  const { faults, document } = checkedOf(state);
  return faultsOf(faults, document, element).some((fault) => isOfInput(fault, port));
};
