/** A new pipeline that plays an uploaded file. Pure. */
import { emptyDocument } from "../document";
import { TITLE_MAX } from "../names";
import type { PipelineDocument } from "../types";
import type { StoredFile } from "./types";

/** The type of the element that plays a file, and its id in a new pipeline. */
export const PLAYER = "csv-replay";

const OFFERED_MAX = 3;

/** The tables that a pipeline can start with, the newest first: few, and the one that is asked for by its id. */
export function offered(files: readonly StoredFile[], asked: string | null = null): StoredFile[] {
  const ready = files
    .filter(({ state }) => state === "imported")
    .sort((a, b) => b.created_at.localeCompare(a.created_at));
  return ready.filter(({ id }, index) => index < OFFERED_MAX || id === asked);
}

/** The endings of tables, and those of packed ones. */
const ENDING =
  /(\.(csv|tsv|tab|txt|dat|log|asc|json|jsonl|ndjson|xlsx|xlsm|xls|ods|parquet))?(\.(gz|bz2|xz|zst|zip))?$/i;

/** "Readings of March.csv.gz" -> "Readings of March" */
export const titleOf = ({ name }: Pick<StoredFile, "name">): string =>
  (name.replace(ENDING, "") || name).slice(0, TITLE_MAX);

/** A draft with the file's element alone. The server gives it its name. */
export const draftOf = ({ reference }: Pick<StoredFile, "reference">): PipelineDocument => ({
  ...emptyDocument("new"),
  spec: { elements: [{ id: PLAYER, type: PLAYER, params: { path: reference }, ui: { x: 0, y: 0 } }] },
});
