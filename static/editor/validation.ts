/** Keeps faults and schemas up to date with the shown document. */
import { useEffect, useRef } from "react";
import { post } from "../shared/api";
import { elementsOf } from "../shared/document";
import { useFiles } from "../shared/files/use-files";
import type { PipelineDocument, Validation } from "../shared/types";
import { current, useEditor } from "./store";

const QUIET_MS = 350;
let turn = 0;
let timer = 0;

/** Check the shown document now; null when the server could not be asked. */
export async function validateNow(): Promise<Validation | null> {
  const mine = ++turn;
  const document = current();
  try {
    const result = await post<Validation>(
      `/pipelines/${encodeURIComponent(useEditor.getState().name)}/validate`,
      { document },
    );
    // an answer that was overtaken by a newer question is about a document no longer shown
    if (mine === turn) {
      const { faults, schemas } = result;
      useEditor.setState({ faults, schemas, checked: document });
    }
    return result;
  } catch {
    return null;
  }
}

/** An import that ends or asks changes what is wrong with a document that names the file. */
export function useFileStates(): void {
  const named = useEditor((state) => filesOf(state.history.present));
  const { data } = useFiles(named !== "");
  const states = (data ?? [])
    .filter(({ reference }) => named.includes(reference))
    .map(({ id, state }) => `${id} ${state}`)
    .join(", ");
  const before = useRef(states);
  useEffect(() => {
    if (states && before.current && states !== before.current) void validateNow();
    before.current = states;
  }, [states]);
}

/** The uploaded files that the elements name, as one text. */
const filesOf = (document: PipelineDocument): string =>
  elementsOf(document)
    .flatMap(({ params }) => Object.values(params ?? {}))
    .filter((value) => typeof value === "string" && value.startsWith("upload:"))
    .join(" ");

export function startValidation(): void {
  let seen: PipelineDocument | null = null;
  const look = () => {
    if (current() === seen) return;
    seen = current();
    window.clearTimeout(timer);
    timer = window.setTimeout(() => void validateNow(), QUIET_MS);
  };
  useEditor.subscribe(look);
  look();
}
