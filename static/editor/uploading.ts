/** Files that are uploaded for a parameter of an element, also while its form is closed. */
import { findElement } from "../shared/document";
import { follow } from "../shared/files/follow";
import type { StoredFile } from "../shared/files/types";
import { startUpload } from "../shared/files/uploads";
import type { Operator } from "../shared/types";
import { toast } from "../shared/ui/toast";
import { changeElement } from "./edits";
import { isFor } from "./form/files";
import { fieldsOf, type Field } from "./form/schema";
import type { Point } from "./places";
import { addElement, commit, current, useEditor, type Join } from "./store";

export const ownerOf = (element: string, parameter: string): string => `${element} ${parameter}`;

/** Sets the parameter to a file, wherever its form is. Returns whether the element is still there. */
export function setFile(element: string, parameter: string, reference: string): boolean {
  const found = findElement(current(), element);
  if (!found) return false;
  if (found.params?.[parameter] !== reference)
    commit(changeElement(current(), element, { params: { ...found.params, [parameter]: reference } }));
  return true;
}

/** Uploads a file and sets the parameter to it. What can be read in two ways is asked. */
export function uploadFor(element: string, parameter: string, file: File): void {
  const take = (reference: string) => void setFile(element, parameter, reference);
  const taken = (stored: StoredFile) => {
    if (!setFile(element, parameter, stored.reference))
      toast({
        tone: "done",
        title: `${file.name} is uploaded`,
        text: "Its element is gone. You can choose the file in another one.",
      });
    void follow(stored.id, take);
  };
  startUpload(file, taken, ownerOf(element, parameter));
}

const fileFields = (operator: Operator): Field[] =>
  fieldsOf(operator.params_schema, operator.params_schema, "params").filter(({ kind }) => kind === "file");

/** The operator that a file of this name is for: a source where one takes it. */
export function takerOf(
  operators: Iterable<Operator>,
  name: string,
): { operator: Operator; parameter: string } | null {
  const takers = [...operators].flatMap((operator) =>
    fileFields(operator)
      .filter((field) => isFor(field.schema, name))
      .map((field) => ({ operator, parameter: field.name })),
  );
  return takers.find(({ operator }) => operator.inputs.length === 0) ?? takers[0] ?? null;
}

/** Adds the element that a dropped file is for, and uploads the file for it. `join`: as of `addElement`. */
export function addForFile(file: File, at: Point, join?: Join): void {
  const taker = takerOf(useEditor.getState().operators.values(), file.name);
  const id = taker && addElement(taker.operator.type, at, join);
  if (taker && id) uploadFor(id, taker.parameter, file);
  else toast({ tone: "error", title: `No element takes ${file.name}` });
}

/** The same for a file that is uploaded already. */
export function addForStored({ name, reference }: StoredFile, at: Point): void {
  const taker = takerOf(useEditor.getState().operators.values(), name);
  const withFile: Join = (document, id) =>
    changeElement(document, id, {
      params: { ...findElement(document, id)?.params, ...(taker && { [taker.parameter]: reference }) },
    });
  if (!taker || !addElement(taker.operator.type, at, withFile))
    toast({ tone: "error", title: `No element takes ${name}` });
}
