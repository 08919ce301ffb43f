/** Files that are uploaded for a parameter of an element, also while its form is closed. */
import { findElement } from "../shared/document";
import type { StoredFile } from "../shared/files/types";
import { startUpload } from "../shared/files/uploads";
import type { Operator } from "../shared/types";
import { toast } from "../shared/ui/toast";
import { changeElement } from "./edits";
import { isFor } from "./form/files";
import { fieldsOf, type Field } from "./form/schema";
import type { Point } from "./places";
import { addElement, commit, current, useEditor } from "./store";

export const ownerOf = (element: string, parameter: string): string => `${element} ${parameter}`;

/** Uploads a file and sets the parameter to it. `take` may do that instead; it returns whether it did. */
export function uploadFor(
  element: string,
  parameter: string,
  file: File,
  take: (reference: string) => boolean = () => false,
): void {
  const taken = (stored: StoredFile) => {
    if (take(stored.reference)) return;
    const found = findElement(current(), element);
    if (found)
      commit(
        changeElement(current(), element, { params: { ...found.params, [parameter]: stored.reference } }),
      );
    else
      toast({
        tone: "done",
        title: `${file.name} is uploaded`,
        text: "Its element is gone. You can choose the file in another one.",
      });
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

/** Adds the element that a dropped file is for, and uploads the file for it. */
export function addForFile(file: File, at: Point): void {
  const taker = takerOf(useEditor.getState().operators.values(), file.name);
  const id = taker && addElement(taker.operator.type, at);
  if (taker && id) uploadFor(id, taker.parameter, file);
  else toast({ tone: "error", title: `No element takes ${file.name}` });
}
