import { Problem } from "../ui/parts";
import type { StoredFile } from "./types";

/** Why a file could not be looked at or imported, and what to do. */
export function Trouble({ file: { error } }: { file: StoredFile }) {
  if (!error) return null;
  return <Problem error={new Error([error.what, error.where, error.next].filter(Boolean).join(" "))} />;
}
