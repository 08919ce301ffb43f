/** Keeps faults and schemas up to date with the shown document. */
import { post } from "../shared/api";
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
