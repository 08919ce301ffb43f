/** What the editor knows of the draft's streams. */
import type { PortRef } from "../../shared/document";
import { faultsOf, type useEditor } from "../store";
import { isOfInput, passing, passingWords, type Checked, type Place } from "./passing";

type State = ReturnType<typeof useEditor.getState>;

/** Columns are those of the draft, so neither *Live* nor a version that is compared has them. */
export const isDrafted = ({ mode, looked }: State): boolean => mode === "edit" && !looked;

export const checkedOf = ({ checked, history, operators, schemas, faults }: State): Checked => ({
  document: checked ?? history.present,
  operators,
  schemas,
  faults,
});

let said: { checked: Checked; words: Map<string, string> } | null = null;

/**
 * The text of a place for a screen reader; empty where there is nothing of the draft. Made once for each
 * check, for all streams ask at each change, as in each frame of a drag.
 */
export function wordsAt(state: State, place: Place): string {
  if (!isDrafted(state)) return "";
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
  if (!isDrafted(state)) return false;
  const { faults, document } = checkedOf(state);
  return faultsOf(faults, document, element).some((fault) => isOfInput(fault, port));
};
