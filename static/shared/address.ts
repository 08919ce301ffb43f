/** Addresses of this site: permalinks to what is shown, and links to where it is shown. */
import { useState } from "react";

/** Keeps what is shown in the address, as a permalink. A value of null removes its entry. */
export function remember(params: Record<string, string | null>): void {
  const url = new URL(window.location.href);
  for (const [name, value] of Object.entries(params)) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  window.history.replaceState(null, "", url);
}

/** A value that is kept in the address; empty when the address does not have it. */
export function useParam(name: string): [string, (value: string) => void] {
  const [value, setValue] = useState(new URL(window.location.href).searchParams.get(name) ?? "");
  return [
    value,
    (next) => {
      setValue(next);
      remember({ [name]: next || null });
    },
  ];
}

/** Whether the address asks to begin something new, as the command palette does. Once: it is taken out. */
export function takeNew(): boolean {
  const asked = new URL(window.location.href).searchParams.has("new");
  if (asked) remember({ new: null });
  return asked;
}

/** A new pipeline that starts with an uploaded file. */
export const newPipelinePage = (file: string): string => `/pipelines/?new=1&file=${encodeURIComponent(file)}`;

/** The id of the file that a new pipeline starts with; null for none. Once: it is taken out. */
export function takeFile(): string | null {
  const file = new URL(window.location.href).searchParams.get("file");
  if (file) remember({ file: null });
  return file;
}

/** The editor of a pipeline, with the element chosen if there is one. */
export const editPage = (pipeline: string, element: string | null): string =>
  `/pipelines/${encodeURIComponent(pipeline)}?mode=edit${element ? `&element=${encodeURIComponent(element)}` : ""}`;

/** The list of files, with the way back to the form of an element. */
export const filesPage = (pipeline: string, element: string): string =>
  `/files/?from=${encodeURIComponent(pipeline)}&element=${encodeURIComponent(element)}`;

/** The form that led to this page; null when none did. */
export function cameFrom(): { pipeline: string; element: string | null } | null {
  const { searchParams } = new URL(window.location.href);
  const pipeline = searchParams.get("from");
  return pipeline ? { pipeline, element: searchParams.get("element") } : null;
}

/** The live view of a pipeline, with the element chosen if there is one. */
export const livePage = (pipeline: string, element?: string | null): string =>
  `/pipelines/${encodeURIComponent(pipeline)}?mode=live${element ? `&element=${encodeURIComponent(element)}` : ""}`;

/** A template with its words, element by element. */
export const templatePage = (name: string): string => `/templates/${encodeURIComponent(name)}`;

/** An element with its charts and records in full width. */
export const elementPage = (pipeline: string, element: string): string =>
  `/pipelines/${encodeURIComponent(pipeline)}/elements/${encodeURIComponent(element)}`;
